"""Roles and schemas of applications in the database.

Each change raises the version that If-Match compares, and the revision that compiled ones are kept under.
"""

from collections.abc import Iterable
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.perm.engine.records import RoleRecord
from sso.perm.errors import PermissionConflict

ANY_PROJECT = object()
MOVED = "the application was moved to another project meanwhile: try again"
FIELDS = ("meta", "description", "protected", "default", "condition", "user_limit", "params")

_LOCK = Statement("SELECT * FROM applications WHERE application_id = :application_id FOR UPDATE")
_KEEP = Statement(
    """SELECT 1 FROM applications WHERE application_id = ANY(CAST(:ids AS int[]))
    ORDER BY application_id FOR SHARE"""
)
_READ = Statement("SELECT * FROM applications WHERE application_id = :application_id")
# Roles are part of the schema record, so a change of one is a new version of it: If-Match then sees every change.
_RAISE = Statement(
    """UPDATE applications SET version = version + 1, revision = revision + 1,
        updated_at = extract(epoch FROM clock_timestamp())
    WHERE application_id = :application_id"""
)
_ALL = Statement(
    """SELECT name, meta, description, protected, "default", condition, user_limit, params FROM roles
    WHERE application_id = :application_id ORDER BY name"""
)
_PUT = Statement(
    """INSERT INTO roles (application_id, name, meta, description, protected, "default", condition, user_limit, params)
    VALUES (:application_id, :name, :meta, :description, :protected, :default, :condition, :user_limit, :params)
    ON CONFLICT (application_id, name) DO UPDATE SET meta = excluded.meta, description = excluded.description,
        protected = excluded.protected, "default" = excluded."default", condition = excluded.condition,
        user_limit = excluded.user_limit, params = excluded.params"""
)
_DELETE = Statement("DELETE FROM roles WHERE application_id = :application_id AND name = :name")
# Generic roles are given in memberships, too.
_HOLDERS = Statement(
    """SELECT count(*) FROM (
        SELECT user_id FROM role_assignments WHERE application_id = :application_id AND name = :name
            AND (ttl > 0 OR expired = 0 OR expired > extract(epoch FROM now()))
        UNION
        SELECT m.user_id FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
        WHERE :application_id = 1 AND m.role = :name
            AND (m.ttl > 0 OR m.expired = 0 OR m.expired > extract(epoch FROM now()))) AS holders
    WHERE user_id <> :but"""
)
_SCHEMA = Statement(
    """UPDATE applications SET login = :login, public_data = :public_data, private_data = :private_data,
        secret_data = :secret_data, version = version + 1, revision = revision + 1,
        updated_at = extract(epoch FROM clock_timestamp())
    WHERE application_id = :application_id RETURNING *"""
)


async def lock_application(tx: Runner, application_id: int, project_id: object = ANY_PROJECT) -> Row:
    """Whoever changes schema, roles or assignments of an application does it alone. A caller who was judged by the
    application's project names it: if the application was moved since, the rights of the caller are unknown."""
    row = await tx.row(_LOCK, application_id=application_id)
    assert row is not None  # applications are never deleted
    if project_id is not ANY_PROJECT and row["project_id"] != project_id:
        raise PermissionConflict(MOVED)
    return row


async def keep_applications(tx: Runner, application_ids: Iterable[int]) -> None:
    """Schemas and roles stay as they are until the end of the transaction. To be asked for before a project is locked:
    whoever changes a role locks its application first, and then the projects that it is taken from."""
    await tx.rows(_KEEP, ids=sorted(application_ids))


async def read_row(runner: Runner, application_id: int) -> Row:
    row = await runner.row(_READ, application_id=application_id)
    assert row is not None  # applications are never deleted
    return row


async def read_roles(runner: Runner, application_id: int) -> dict[str, RoleRecord]:
    return {row["name"]: RoleRecord(**dict(row)) for row in await runner.rows(_ALL, application_id=application_id)}


async def put_role(tx: Runner, application_id: int, role: RoleRecord) -> None:
    values = {name: getattr(role, name) for name in FIELDS}
    await tx.value(_PUT, application_id=application_id, name=role.name, **values)
    await tx.value(_RAISE, application_id=application_id)


async def delete_role(tx: Runner, application_id: int, name: str) -> None:
    """The role alone; `Cascade` ends what was given with it."""
    await tx.value(_DELETE, application_id=application_id, name=name)
    await tx.value(_RAISE, application_id=application_id)


async def holders(tx: Runner, application_id: int, name: str, but: str = "") -> int:
    """How many users have an unexpired assignment, not counting one of them."""
    count: int = await tx.value(_HOLDERS, application_id=application_id, name=name, but=but)
    return count


async def save_schema(tx: Runner, application_id: int, sections: dict[str, Any]) -> Row:
    row = await tx.row(_SCHEMA, application_id=application_id, **sections)
    assert row is not None
    return row
