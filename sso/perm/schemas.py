"""POST /api/permissions/meta/schema (§2.8, §4.10)."""

import re
from typing import Any

from sso.db.database import Database
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer
from sso.perm.engine.operations import Operation
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.input import validators
from sso.perm.input.protected import check_schema
from sso.perm.input.roles import read_role
from sso.perm.input.schema import read_schema
from sso.perm.request import PermissionRequest
from sso.perm.roles import refuse_root, save_role, shown
from sso.perm.stores import audit
from sso.perm.stores import roles as role_store
from sso.perm.stores.administrators import administered_through, require_administrators
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.builtin_roles import complete_schema

SECTIONS = ("login", "public_data", "private_data", "secret_data")
_VERSION = re.compile(r'"?([0-9]{1,18})"?', re.ASCII)


class SchemaEndpoint:
    def __init__(self, database: Database, desk: Authorizer) -> None:
        self._database = database
        self._desk = desk

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        if call.action("get", "save") == "get":
            return await self._get(call)
        return await self._save(call)

    async def _get(self, call: PermissionRequest) -> dict[str, Any]:
        wanted = call.application_id()
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.SCHEMA_READ)

        async def work(tx: Transaction) -> dict[str, Any]:
            return _shown(await role_store.read_row(tx, wanted), await role_store.read_roles(tx, wanted))

        return call.answer(data=await self._database.transaction(work))

    async def _save(self, call: PermissionRequest) -> dict[str, Any]:
        wanted = call.application_id()
        data = call.required_data()
        given, warnings = read_schema(data)
        call.warnings.extend(warnings)
        roles, more = read_schema_roles(data)
        call.warnings.extend(more)
        expected = _version(call.if_match)
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.SCHEMA_MODIFY)
        for role in roles:
            refuse_root(standing, wanted, role["name"])
        if not standing.rights.is_root:
            given.pop("secret_data", None)  # system rules are not its users' to edit

        async def work(tx: Transaction) -> dict[str, Any]:
            old = await role_store.lock_application(tx, wanted)
            if expected is not None and old["version"] != expected:
                raise PermissionConflict(f"the schema is at version {old['version']}")
            schema = complete_schema(old, given)
            known = await role_store.read_roles(tx, wanted)
            names = [role["name"] for role in roles]
            administered = await administered_through(tx, wanted, names, call.caller.now)
            # Named roles first: what they become is what the new schema must go with.
            for role in roles:
                await save_role(tx, call.caller.actor, wanted, old["project_id"], schema, known, role)
            await require_administrators(tx, administered, call.caller.now)
            return _shown(await save_schema(tx, call.caller.actor, old, schema, known), known)

        return call.answer(data=await self._database.transaction(work))


def read_schema_roles(data: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The ``roles`` of a schema, an object by their names, and warnings."""
    found: list[dict[str, Any]] = []
    warnings: list[str] = []
    for name, role in validators.an_object(data.get("roles", {}), "roles").items():
        fields = validators.an_object(role, f"roles.{name}" if name.isidentifier() else "roles")
        if fields.get("name", name) != name:
            raise InvalidInput("roles: the name of a role differs from its key")
        given, more = read_role({**fields, "name": name}, "roles")
        found.append(given)
        warnings += more
    return found, warnings


async def save_schema(
    tx: Transaction, actor: AuditActor, old: Row, schema: Schema, known: dict[str, RoleRecord]
) -> Row:
    """Save the schema of a locked application; its roles, as they are by now, must go with it."""
    check_schema(schema, known.values())
    wanted: int = old["application_id"]
    row = await role_store.save_schema(tx, wanted, {name: getattr(schema, name) for name in SECTIONS})
    await audit.write(
        tx,
        actor,
        "schema.save",
        str(wanted),
        _audited(old),
        _audited(row),
        project_id=old["project_id"],
        application_id=wanted,
    )
    return row


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    found = _VERSION.fullmatch(if_match.strip())
    if found is None:
        raise InvalidInput("If-Match: must be a version")
    return int(found[1])


def _shown(row: Row, roles: dict[str, RoleRecord]) -> dict[str, Any]:
    schema = complete_schema(row)
    return {
        "application_id": row["application_id"],
        **{name: getattr(schema, name) for name in SECTIONS},
        "roles": {name: shown(role) for name, role in sorted(roles.items())},
        "version": row["version"],
        "updated_at": row["updated_at"],
    }


def _audited(row: Row) -> dict[str, Any]:
    """Roles have entries of their own."""
    return {name: row[name] for name in SECTIONS}
