"""POST /api/permissions/roles (§2.7, §4.9)."""

from dataclasses import replace
from typing import Any

from sso.core.errors import Forbidden, NotFound
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.engine.operations import Operation
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.errors import PermissionConflict
from sso.perm.input.names import read_segment
from sso.perm.input.protected import check_role, includes_protected
from sso.perm.input.roles import read_role
from sso.perm.request import PermissionRequest
from sso.perm.stores import audit
from sso.perm.stores import roles as role_store
from sso.perm.stores.administrators import administered_through, require_administrators
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.cascade import Cascade

FIELDS = frozenset(("name", *role_store.FIELDS, "application_id"))


class RoleEndpoint:
    def __init__(self, database: Database, desk: Authorizer) -> None:
        self._database = database
        self._desk = desk

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        match call.action("get", "save", "delete"):
            case "get":
                return await self._get(call)
            case "save":
                return await self._save(call)
            case _:
                return await self._delete(call)

    async def _get(self, call: PermissionRequest) -> dict[str, Any]:
        wanted = call.application_id()
        data = call.required_data()
        call.ignore_unknown(data, FIELDS)
        name = read_segment(data["name"], "data.name") if "name" in data else None
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.ROLE_READ if name else Operation.ROLE_LIST)
        roles = standing.application.application.roles
        if name is None:
            return call.answer(data=[shown(role.record) for _, role in sorted(roles.items())])
        if name not in roles:
            raise NotFound("role not found")
        return call.answer(data=shown(roles[name].record))

    async def _save(self, call: PermissionRequest) -> dict[str, Any]:
        wanted = call.application_id()
        given, warnings = read_role(call.required_data())
        call.warnings.extend(warnings)
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.ROLE_MODIFY)
        refuse_root(standing, wanted, given["name"])

        async def work(tx: Transaction) -> RoleRecord:
            row = await role_store.lock_application(tx, wanted, standing.application.project_id)
            schema = Schema(row["public_data"], row["private_data"], row["secret_data"], row["login"])
            known = await role_store.read_roles(tx, wanted)
            _require_schema_right(standing, known.get(given["name"]), given, schema)
            administered = await administered_through(tx, wanted, [given["name"]], call.caller.now)
            role = await save_role(tx, call.caller.actor, wanted, row["project_id"], schema, known, given)
            await require_administrators(tx, administered, call.caller.now)
            return role

        return call.answer(data=shown(await self._database.transaction(work)))

    async def _delete(self, call: PermissionRequest) -> dict[str, Any]:
        wanted = call.application_id()
        data = call.required_data()
        call.ignore_unknown(data, FIELDS)
        name = read_segment(data.get("name"), "data.name")
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.ROLE_MODIFY)
        if wanted == CENTRAL_APPLICATION_ID and name == ROOT_ROLE:
            raise PermissionConflict("the role root of the central application cannot be removed")

        async def work(tx: Transaction) -> None:
            row = await role_store.lock_application(tx, wanted, standing.application.project_id)
            old = (await role_store.read_roles(tx, wanted)).get(name)
            if old is None:
                raise NotFound("role not found")
            if old.protected:
                standing.require_here(Operation.SCHEMA_MODIFY)
            administered = await administered_through(tx, wanted, [name], call.caller.now)
            await _audit(tx, call.caller.actor, "role.delete", wanted, row["project_id"], old, None)
            await delete_role(tx, call.caller.actor, wanted, row["project_id"], name)
            await require_administrators(tx, administered, call.caller.now)

        await self._database.transaction(work)
        return call.answer()


def refuse_root(standing: CallerRights, application_id: int, name: str) -> None:
    """What root is decides who has every right everywhere: that is more than the right to change roles."""
    if application_id == CENTRAL_APPLICATION_ID and name == ROOT_ROLE and not standing.rights.is_root:
        raise Forbidden("the role root is required")


def _require_schema_right(
    standing: CallerRights, old: RoleRecord | None, given: dict[str, Any], schema: Schema
) -> None:
    """Protected roles, and roles with protected rules, are made, changed and removed with canModifySchema only."""
    new = replace(old or RoleRecord(given["name"]), **given)
    if new.protected or (old is not None and old.protected) or includes_protected(new, schema):
        standing.require_here(Operation.SCHEMA_MODIFY)


async def delete_role(
    tx: Transaction, actor: AuditActor, application_id: int, project_id: str | None, name: str
) -> None:
    """The role with its assignments; a generic one leaves all memberships, a granted one all projects."""
    await role_store.delete_role(tx, application_id, name)
    cascade = Cascade(tx, actor, f"role.delete {application_id}/{name}")
    await cascade.end_assignments(application_id, project_id, name)
    await cascade.end_role_in_projects(
        application_id, name, generic=application_id == CENTRAL_APPLICATION_ID, grants_only=False
    )


async def save_role(
    tx: Transaction,
    actor: AuditActor,
    application_id: int,
    project_id: str | None,
    schema: Schema,
    known: dict[str, RoleRecord],
    given: dict[str, Any],
) -> RoleRecord:
    """Save one role of a locked application, with all its checks; what is not given stays."""
    name = given["name"]
    old = known.get(name)
    role = replace(old or RoleRecord(name), **given)
    check_role(role, schema)
    if application_id == CENTRAL_APPLICATION_ID and name == ROOT_ROLE and not role.protected:
        raise PermissionConflict("the role root of the central application is protected")
    await role_store.put_role(tx, application_id, role)
    if role.protected and old is not None and not old.protected:
        cascade = Cascade(tx, actor, f"role.save {application_id}/{name}")
        await cascade.end_role_in_projects(
            application_id, name, generic=application_id == CENTRAL_APPLICATION_ID, grants_only=True
        )
    await _audit(tx, actor, "role.save", application_id, project_id, old, role)
    known[name] = role
    return role


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
    await audit.write(
        tx,
        actor,
        operation,
        f"{application_id}/{role.name}",
        shown(old) if old else None,
        shown(new) if new else None,
        project_id=project_id,
        application_id=application_id,
    )


def shown(role: RoleRecord) -> dict[str, Any]:
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
