"""POST /api/permissions/project/membership: who has which roles in a project, and which groups may come in (§4.6)."""

from typing import Any, TypeAlias

from sso.core.errors import Forbidden
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.perm.authorization import Authorizer
from sso.perm.delegation import Delegation
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.operations import Operation
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import read_group_id
from sso.perm.input.project import ProjectResources, read_group_list, read_member_roles
from sso.perm.projects import ProjectEndpoint
from sso.perm.request import PermissionRequest
from sso.perm.stores import audit
from sso.perm.stores import roles as role_store
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.facts import member_roles, read_application
from sso.perm.stores.project_state import belongings, lock_project
from sso.perm.stores.user_limits import count_holders, require_limits

MAX_MEMBERS = 10_000
KNOWN = frozenset(("id", "users", "allow", "disallow"))
MEMBER = frozenset(("user_id", "roles"))
LEVELS = ("applications", "services", "groups")
_Row: TypeAlias = tuple[str, str, str, dict[str, Any]]  # user_id, level, resource, assignment

_MEMBERS = Statement(
    """SELECT user_id, jsonb_agg(jsonb_build_array(level, resource, role, expired, ttl) ORDER BY position) AS roles
    FROM project_members WHERE project_id = :id GROUP BY user_id ORDER BY length(user_id), user_id"""
)
_LISTS = Statement("SELECT allow, disallow FROM projects WHERE id = :id")
_CLEAR = Statement("DELETE FROM project_members WHERE project_id = :id")
_PUT = Statement(
    """INSERT INTO project_members (project_id, user_id, level, resource, role, expired, ttl, position)
    SELECT :id, item.* FROM unnest(CAST(:users AS text[]), CAST(:levels AS text[]), CAST(:resources AS text[]),
        CAST(:roles AS text[]), CAST(:expired AS bigint[]), CAST(:ttl AS bigint[])) WITH ORDINALITY AS item"""
)
_UNKNOWN = Statement(
    """SELECT item.user_id FROM unnest(CAST(:user_ids AS text[])) AS item (user_id)
    LEFT JOIN users u ON u.user_id = item.user_id WHERE u.user_id IS NULL LIMIT 1"""
)
_SET_LISTS = Statement("UPDATE projects SET allow = :allow, disallow = :disallow WHERE id = :id")


class MembershipEndpoint:
    def __init__(self, database: Database, desk: Authorizer, projects: ProjectEndpoint) -> None:
        self._database = database
        self._desk = desk
        self._projects = projects

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        action = call.action("get", "save")
        data = call.required_data()
        call.ignore_unknown(data, KNOWN)
        wanted = await self._projects.resolve(data.get("id"))
        if action == "save":
            _check_shape(data)
        standing = await self._desk.standing(call.caller)
        operation = Operation.MEMBERSHIP_GET if action == "get" else Operation.MEMBERSHIP_SAVE
        row = await self._projects.visible(standing, wanted, operation)
        if action == "get":
            return call.answer(data=await read_membership(self._database, wanted))
        if row["removed"]:
            raise Forbidden("removed")

        async def work(tx: Transaction) -> tuple[dict[str, Any], list[str]]:
            warnings: list[str] = []
            delegation = await Delegation.begin(tx, call.caller, wanted)
            saved = await save_membership(tx, call.caller.actor, wanted, data, warnings)
            await delegation.judge()
            return saved, warnings

        saved, warnings = await self._database.transaction(work)
        call.warnings.extend(warnings)
        return call.answer(data=saved)


def _check_shape(data: dict[str, Any]) -> None:
    """As far as it can be told without knowing the project."""
    for at, item in enumerate(validators.an_array(data.get("users", []), "users", MAX_MEMBERS)):
        member = validators.an_object(item, f"users[{at}]")
        validators.text(member.get("user_id"), f"users[{at}].user_id", 64)
        validators.an_object(member.get("roles", {}), f"users[{at}].roles")
    for name in ("allow", "disallow"):
        for at, item in enumerate(validators.an_array(data.get(name, []), name)):
            read_group_id(item, f"{name}[{at}]")


async def read_membership(runner: Runner, wanted: str) -> dict[str, Any]:
    lists = await runner.row(_LISTS, id=wanted)
    members = await runner.rows(_MEMBERS, id=wanted)
    assert lists is not None
    return {
        "id": wanted,
        "users": [_member(row["user_id"], row["roles"]) for row in members],
        "allow": list(lists["allow"]),
        "disallow": list(lists["disallow"]),
    }


async def save_membership(
    tx: Transaction, actor: AuditActor, wanted: str, data: dict[str, Any], warnings: list[str]
) -> dict[str, Any]:
    """Each part that is given replaces the old one; what it names must be the project's own."""
    await role_store.keep_applications(tx, [CENTRAL_APPLICATION_ID])
    await lock_project(tx, wanted)
    has = await belongings(tx, wanted)
    before = await read_membership(tx, wanted)
    if "users" in data:
        central = await read_application(tx, CENTRAL_APPLICATION_ID)
        assert central is not None
        rows = _read_users(data["users"], has, central, warnings)
        if _members(rows) != before["users"]:
            await _require_users(tx, {row[0] for row in rows} - {user["user_id"] for user in before["users"]})
            counted = await count_holders(tx, {row[3]["name"] for row in rows})
            await _put_members(tx, wanted, rows)
            await require_limits(tx, counted)
    lists = {
        name: read_group_list(data[name], has, name) if name in data else before[name] for name in ("allow", "disallow")
    }
    if any(lists[name] != before[name] for name in lists):
        await tx.value(_SET_LISTS, id=wanted, **lists)
    after = await read_membership(tx, wanted)
    await audit.write(tx, actor, "membership.save", wanted, before, after, project_id=wanted)
    return after


async def _require_users(tx: Transaction, user_ids: set[str]) -> None:
    """New members must exist; whoever is a member already may be sent back."""
    unknown = await tx.value(_UNKNOWN, user_ids=sorted(user_ids)) if user_ids else None
    if unknown is not None:
        raise InvalidInput(f"users: there is no user {unknown}")


async def _put_members(tx: Transaction, wanted: str, rows: list[_Row]) -> None:
    await tx.value(_CLEAR, id=wanted)
    await tx.value(
        _PUT,
        id=wanted,
        users=[row[0] for row in rows],
        levels=[row[1] for row in rows],
        resources=[row[2] for row in rows],
        roles=[row[3]["name"] for row in rows],
        expired=[row[3].get("expired", 0) for row in rows],
        ttl=[row[3].get("ttl", 0) for row in rows],
    )


def _members(rows: list[_Row]) -> list[dict[str, Any]]:
    """What a get would give once these are written."""
    found: dict[str, list[list[Any]]] = {}
    for user_id, level, resource, given in rows:
        line = [level, resource, given["name"], given.get("expired", 0), given.get("ttl", 0)]
        found.setdefault(user_id, []).append(line)
    return [_member(user_id, found[user_id]) for user_id in sorted(found, key=lambda item: (len(item), item))]


def _member(user_id: str, roles: list[list[Any]]) -> dict[str, Any]:
    return {"user_id": user_id, "roles": _shown(member_roles(roles))}


def _read_users(value: object, has: ProjectResources, central: CompiledApplication, warnings: list[str]) -> list[_Row]:
    rows: list[_Row] = []
    seen: set[str] = set()
    for at, item in enumerate(validators.an_array(value, "users", MAX_MEMBERS)):
        where = f"users[{at}]"
        member = validators.an_object(item, where)
        warnings += validators.unknown(member, MEMBER, where)
        user_id = member.get("user_id")
        if not isinstance(user_id, str) or not is_user_id(user_id):
            raise InvalidInput(f"{where}.user_id: must be a user id")
        if user_id in seen:
            raise InvalidInput(f"{where}.user_id: stands twice")
        seen.add(user_id)
        roles, more = read_member_roles(member.get("roles", {}), has, central, f"{where}.roles")
        warnings += more
        rows += [(user_id, "project", "", given) for given in roles.get("project", ())]
        for level in LEVELS:
            for resource, items in roles.get(level, {}).items():
                rows += [(user_id, level, resource, given) for given in items]
    return rows


def _shown(roles: dict[str, Any]) -> dict[str, Any]:
    """Only the levels that hold something, and roles without limits as plain names: as it can be sent back."""
    shown: dict[str, Any] = {}
    if roles["project"]:
        shown["project"] = [_short(item) for item in roles["project"]]
    for level in LEVELS:
        if roles[level]:
            shown[level] = {resource: [_short(item) for item in items] for resource, items in roles[level].items()}
    return shown


def _short(item: dict[str, Any]) -> str | dict[str, Any]:
    limits = {name: item[name] for name in ("expired", "ttl") if item.get(name)}
    return {"name": item["name"], **limits} if limits else str(item["name"])
