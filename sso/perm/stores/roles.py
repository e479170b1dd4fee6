"""Roles of applications in the database (§2.7). Every change is written to the audit trail.

Roles are part of the schema record: each change raises the version that If-Match compares, and the revision under
which compiled applications are cached.
"""

from collections.abc import Iterable
from typing import Any

import orjson
from msgspec.structs import replace

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction, run_pure
from sso.perm.engine.records import RoleRecord
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.errors import PermissionConflict
from sso.perm.input.protected_rules import check_role_protection
from sso.perm.stores.cascade import Cascade
from sso.perm.stores.compilation import LARGE_BYTES

FIELDS = ("meta", "description", "protected", "default", "condition", "user_limit", "params")

_RAISE_VERSION = Statement(
    """UPDATE applications SET version = version + 1, revision = revision + 1,
        updated_at = floor(extract(epoch FROM clock_timestamp()))
    WHERE application_id = :application_id"""
)
# JSON is selected as text, because that of all roles may be so large that it has to be decoded in a thread.
_SELECT = """SELECT CAST(to_jsonb(r) - 'application_id' AS text) AS role FROM roles r
    WHERE application_id = :application_id"""
_ALL = Statement(f"{_SELECT} ORDER BY name")
_ONE = Statement(f"{_SELECT} AND name = :name")
_PUT = Statement(
    """INSERT INTO roles (application_id, name, meta, description, protected, "default", condition, user_limit, params)
    VALUES (:application_id, :name, :meta, :description, :protected, :default, :condition, :user_limit, :params)
    ON CONFLICT (application_id, name) DO UPDATE SET meta = excluded.meta, description = excluded.description,
        protected = excluded.protected, "default" = excluded."default", condition = excluded.condition,
        user_limit = excluded.user_limit, params = excluded.params"""
)
_DELETE = Statement("DELETE FROM roles WHERE application_id = :application_id AND name = :name")


async def read_roles(runner: Runner, application_id: int) -> dict[str, RoleRecord]:
    texts = [row["role"] for row in await runner.rows(_ALL, application_id=application_id)]
    return await run_pure(runner, sum(map(len, texts)) > LARGE_BYTES, _decode, texts)


async def read_role(runner: Runner, application_id: int, name: str) -> RoleRecord | None:
    text = await runner.value(_ONE, application_id=application_id, name=name)
    return None if text is None else _decode([text])[name]


def _decode(texts: Iterable[str]) -> dict[str, RoleRecord]:
    """One role at a time, so that a thread does not hold the interpreter while it decodes all of them."""
    roles = (RoleRecord(**orjson.loads(text)) for text in texts)
    return {role.name: role for role in roles}


async def put_role(tx: Runner, application_id: int, role: RoleRecord) -> None:
    """Stores a role without checks or audit entry."""
    values = {name: getattr(role, name) for name in FIELDS}
    await tx.value(_PUT, application_id=application_id, name=role.name, **values)
    await tx.value(_RAISE_VERSION, application_id=application_id)


async def save_role(
    tx: Transaction,
    actor: AuditActor,
    application_id: int,
    project_id: str | None,
    protected: frozenset[str],
    roles: dict[str, RoleRecord],
    changes: dict[str, Any],
) -> RoleRecord:
    """Saves one role of a locked application and puts it into ``roles``; a field that is not in ``changes`` stays.

    ``protected`` are the `protected_rules` of the schema.
    """
    name = changes["name"]
    old = roles.get(name)
    role = replace(old or RoleRecord(name), **changes)
    check_role_protection(role, protected)
    is_central = application_id == CENTRAL_APPLICATION_ID
    if is_central and name == ROOT_ROLE and not role.protected:
        raise PermissionConflict("the role root of the central application is protected")
    await put_role(tx, application_id, role)
    if role.protected and old is not None and not old.protected:
        cascade = Cascade(tx, actor, f"role.save {application_id}/{name}")
        await cascade.remove_role_from_projects(application_id, name, generic=is_central, grants_only=True)
    await _audit(tx, actor, "role.save", application_id, project_id, old, role)
    roles[name] = role
    return role


async def delete_role(
    tx: Transaction, actor: AuditActor, application_id: int, project_id: str | None, role: RoleRecord
) -> None:
    """Deletes a role of a locked application with its assignments, its memberships and its grants to groups."""
    if application_id == CENTRAL_APPLICATION_ID and role.name == ROOT_ROLE:
        raise PermissionConflict("the role root of the central application cannot be removed")
    await _audit(tx, actor, "role.delete", application_id, project_id, role, None)
    await tx.value(_DELETE, application_id=application_id, name=role.name)
    await tx.value(_RAISE_VERSION, application_id=application_id)
    cascade = Cascade(tx, actor, f"role.delete {application_id}/{role.name}")
    await cascade.delete_assignments(application_id, project_id, role.name)
    is_central = application_id == CENTRAL_APPLICATION_ID
    await cascade.remove_role_from_projects(application_id, role.name, generic=is_central, grants_only=False)


async def _audit(
    tx: Transaction,
    actor: AuditActor,
    operation: str,
    application_id: int,
    project_id: str | None,
    old: RoleRecord | None,
    new: RoleRecord | None,
) -> None:
    role = new or old
    assert role is not None
    await trail.write(
        tx,
        actor,
        operation,
        f"{application_id}/{role.name}",
        role_json(old) if old else None,
        role_json(new) if new else None,
        project_id=project_id,
        application_id=application_id,
    )


def role_json(role: RoleRecord) -> dict[str, Any]:
    return {
        "name": role.name,
        "meta": role.meta,
        "description": role.description,
        "protected": role.protected,
        "default": role.default,
        "condition": role.condition,
        "user_limit": role.user_limit,
        "params": role.params,
    }
