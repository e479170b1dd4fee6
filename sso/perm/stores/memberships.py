"""Memberships of projects in the database: roles of users, and the allow and disallow lists (§4.6)."""

from collections.abc import Iterable
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.field_errors import FieldError
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction, run_pure
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.input.membership import LEVELS, MemberRole, read_group_list, read_members
from sso.perm.stores.compilation import read_application
from sso.perm.stores.facts_decoding import member_roles
from sso.perm.stores.locks import lock_project, share_lock_applications
from sso.perm.stores.project_state import MANY_MEMBERS, read_resources
from sso.perm.stores.user_limits import read_user_limits, within_user_limits
from sso.perm.stores.user_rows import require_can_administer

_ROLES = "jsonb_agg(jsonb_build_array(level, resource, role, expired, ttl) ORDER BY position) AS roles"
_SELECT = f"SELECT user_id, {_ROLES} FROM project_members WHERE project_id = :id"
_MEMBERS = Statement(f"{_SELECT} GROUP BY user_id ORDER BY length(user_id), user_id")
# Members in the order of their ids as texts, which the primary key has.
_PAGE = Statement(f"{_SELECT} AND user_id > :after GROUP BY user_id ORDER BY user_id LIMIT :limit")
_MEMBER = Statement(f"{_SELECT} AND user_id = :user_id GROUP BY user_id")
_PROJECT_IDS_OF_USER = Statement(
    """SELECT DISTINCT project_id COLLATE "C" AS project_id FROM project_members
    WHERE user_id = :user_id AND project_id COLLATE "C" > :after ORDER BY 1 LIMIT :limit"""
)
_OF_USER = Statement(
    f"""SELECT m.project_id, p.title, p.display_name, {_ROLES}
    FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
    WHERE m.user_id = :user_id GROUP BY m.project_id, p.title, p.display_name ORDER BY m.project_id LIMIT :limit"""
)
_LISTS = Statement("SELECT allow, disallow FROM projects WHERE id = :id")
_CLEAR_MEMBERS = Statement("DELETE FROM project_members WHERE project_id = :id")
# Positions count the roles of each user, so that the rows of a user stay as they are when other members change.
_PUT_MEMBERS = Statement(
    """INSERT INTO project_members (project_id, user_id, level, resource, role, expired, ttl, position)
    SELECT :id, item.user_id, item.level, item.resource, item.role, item.expired, item.ttl,
        row_number() OVER (PARTITION BY item.user_id ORDER BY item.n)
    FROM unnest(CAST(:users AS text[]), CAST(:levels AS text[]), CAST(:resources AS text[]), CAST(:roles AS text[]),
        CAST(:expired AS bigint[]), CAST(:ttl AS bigint[]))
        WITH ORDINALITY AS item (user_id, level, resource, role, expired, ttl, n)"""
)
_FIRST_UNKNOWN_USER = Statement(
    """SELECT item.user_id FROM unnest(CAST(:user_ids AS text[])) AS item (user_id)
    LEFT JOIN users u ON u.user_id = item.user_id WHERE u.user_id IS NULL LIMIT 1"""
)
_SET_LISTS = Statement("UPDATE projects SET allow = :allow, disallow = :disallow WHERE id = :id")


async def read_membership(runner: Runner, project_id: str) -> dict[str, Any]:
    """Returns the membership of a project that exists, as JSON that a save accepts."""
    lists = await runner.row(_LISTS, id=project_id)
    members = await runner.rows(_MEMBERS, id=project_id)
    assert lists is not None
    return {
        "id": project_id,
        "users": await run_pure(runner, len(members) > MANY_MEMBERS, _rows_json, members),
        "allow": list(lists["allow"]),
        "disallow": list(lists["disallow"]),
    }


async def read_members_after(runner: Runner, project_id: str, after: str, limit: int) -> list[dict[str, Any]]:
    """Returns the members whose ids, as texts, follow ``after``."""
    rows = await runner.rows(_PAGE, id=project_id, after=after, limit=limit)
    return _rows_json(rows)


async def read_member(runner: Runner, project_id: str, user_id: str) -> dict[str, Any] | None:
    row = await runner.row(_MEMBER, id=project_id, user_id=user_id)
    return None if row is None else _member_json(user_id, row["roles"])


async def read_project_ids_of(runner: Runner, user_id: str, after: str, limit: int) -> list[str]:
    """Returns the next projects in which the user has roles."""
    rows = await runner.rows(_PROJECT_IDS_OF_USER, user_id=user_id, after=after, limit=limit)
    return [row["project_id"] for row in rows]


async def read_memberships_of(runner: Runner, user_id: str, limit: int) -> list[dict[str, Any]]:
    """Returns the projects, except removed ones, in which the user has roles, with these roles."""
    rows = await runner.rows(_OF_USER, user_id=user_id, limit=limit)
    return [
        {
            **{name: row[name] for name in ("project_id", "title", "display_name")},
            "roles": _member_json(user_id, row["roles"])["roles"],
        }
        for row in rows
    ]


async def save_membership(
    tx: Transaction, actor: AuditActor, project_id: str, data: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Replaces the parts that are in ``data`` and returns the new membership and warnings.

    Applications, services and groups in ``data`` must belong to the project.
    """
    await share_lock_applications(tx, [CENTRAL_APPLICATION_ID])
    await lock_project(tx, project_id)
    resources = await read_resources(tx, project_id)
    before = await read_membership(tx, project_id)
    warnings: list[str] = []
    if "users" in data:
        central = await read_application(tx, CENTRAL_APPLICATION_ID)
        assert central is not None
        takes_long = isinstance(data["users"], list) and len(data["users"]) > MANY_MEMBERS
        roles, warnings = await run_pure(tx, takes_long, read_members, data["users"], resources, central)
        if await run_pure(tx, takes_long, _members_json, roles) != before["users"]:
            await _replace_members(tx, project_id, before["users"], roles)
    lists = {
        name: read_group_list(data[name], resources, (name,)) if name in data else before[name]
        for name in ("allow", "disallow")
    }
    if any(lists[name] != before[name] for name in lists):
        await tx.value(_SET_LISTS, id=project_id, **lists)
    after = await read_membership(tx, project_id)
    await trail.write(tx, actor, "membership.save", project_id, before, after, project_id=project_id)
    return after, warnings


async def _replace_members(
    tx: Transaction, project_id: str, old_users: list[dict[str, Any]], roles: list[MemberRole]
) -> None:
    """Replaces all members. New members must exist; present members may stay even if the user was deleted."""
    new_users = {role.user_id for role in roles} - {user["user_id"] for user in old_users}
    unknown = await tx.value(_FIRST_UNKNOWN_USER, user_ids=sorted(new_users)) if new_users else None
    if unknown is not None:
        raise FieldError(("users",), f"there is no user {unknown}")
    if new_users:
        await require_can_administer(tx, new_users, ("users",))
    limits = await read_user_limits(tx, {role.role for role in roles})
    async with within_user_limits(tx, CENTRAL_APPLICATION_ID, limits):
        await tx.value(_CLEAR_MEMBERS, id=project_id)
        await tx.value(
            _PUT_MEMBERS,
            id=project_id,
            users=[role.user_id for role in roles],
            levels=[role.level for role in roles],
            resources=[role.resource for role in roles],
            roles=[role.role for role in roles],
            expired=[role.expired for role in roles],
            ttl=[role.ttl for role in roles],
        )


def _rows_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [_member_json(row["user_id"], row["roles"]) for row in rows]


def _members_json(roles: Iterable[MemberRole]) -> list[dict[str, Any]]:
    """Returns the ``users`` that `read_membership` returns once these roles are stored."""
    by_user: dict[str, list[list[Any]]] = {}
    for user_id, *columns in roles:
        by_user.setdefault(user_id, []).append(columns)
    return [_member_json(user_id, by_user[user_id]) for user_id in sorted(by_user, key=lambda item: (len(item), item))]


def _member_json(user_id: str, rows: list[list[Any]]) -> dict[str, Any]:
    """Only the levels with roles, and roles without limits as plain names."""
    roles = member_roles(rows)
    levels: dict[str, Any] = {}
    if roles["project"]:
        levels["project"] = [_role_json(role) for role in roles["project"]]
    for level in LEVELS:
        if roles[level]:
            levels[level] = {resource: [_role_json(role) for role in items] for resource, items in roles[level].items()}
    return {"user_id": user_id, "roles": levels}


def _role_json(role: dict[str, Any]) -> str | dict[str, Any]:
    limits = {name: role[name] for name in ("expired", "ttl") if role.get(name)}
    return {"name": role["name"], **limits} if limits else str(role["name"])
