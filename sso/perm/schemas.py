"""POST /api/permissions/meta/schema (§2.8, §4.10)."""

import re
from typing import Any

from sso.db.bridge import Database, Row, Transaction
from sso.perm import audit, role_store
from sso.perm.call import Call
from sso.perm.desk import Desk
from sso.perm.engine.compiled import RoleRecord, Schema
from sso.perm.engine.operations import Operation
from sso.perm.errors import Conflict, Invalid
from sso.perm.input import kinds
from sso.perm.input.protected import check_schema
from sso.perm.input.roles import read_role
from sso.perm.input.schema import read_schema
from sso.perm.roles import save_role, shown

SECTIONS = ("login", "public_data", "private_data", "secret_data")
_VERSION = re.compile(r'"?([0-9]{1,18})"?', re.ASCII)


class Schemas:
    def __init__(self, database: Database, desk: Desk) -> None:
        self._database = database
        self._desk = desk

    async def handle(self, call: Call) -> dict[str, Any]:
        if call.action("get", "save") == "get":
            return await self._get(call)
        return await self._save(call)

    async def _get(self, call: Call) -> dict[str, Any]:
        wanted = call.application_id()
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.SCHEMA_READ)

        async def work(tx: Transaction) -> dict[str, Any]:
            return _shown(await role_store.read_row(tx, wanted), await role_store.read_roles(tx, wanted))

        return call.answer(data=await self._database.transaction(work))

    async def _save(self, call: Call) -> dict[str, Any]:
        wanted = call.application_id()
        data = call.required_data()
        given, warnings = read_schema(data)
        call.warnings.extend(warnings)
        roles = [self._role(call, name, role) for name, role in self._roles(data).items()]
        expected = _version(call.if_match)
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.SCHEMA_MODIFY)
        if not standing.rights.is_root:
            given.pop("secret_data", None)  # system rules are not its users' to edit

        async def work(tx: Transaction) -> dict[str, Any]:
            old = await role_store.lock_application(tx, wanted)
            if expected is not None and old["version"] != expected:
                raise Conflict(f"the schema is at version {old['version']}")
            sections = {name: given.get(name, old[name]) for name in SECTIONS}
            schema = Schema(**sections)
            known = await role_store.read_roles(tx, wanted)
            before = _shown(old, known)
            # Named roles first: what they become is what the new schema must go with.
            for role in roles:
                await save_role(tx, call.caller.actor, wanted, old["project_id"], schema, known, role)
            check_schema(schema, known.values())
            row = await role_store.save_schema(tx, wanted, sections)
            after = _shown(row, known)
            await audit.write(
                tx,
                call.caller.actor,
                "schema.save",
                str(wanted),
                _audited(before),
                _audited(after),
                project_id=old["project_id"],
                application_id=wanted,
            )
            return after

        return call.answer(data=await self._database.transaction(work))

    def _roles(self, data: dict[str, Any]) -> dict[str, Any]:
        return kinds.an_object(data.get("roles", {}), "roles")

    def _role(self, call: Call, name: str, role: Any) -> dict[str, Any]:
        fields = kinds.an_object(role, f"roles.{name}" if name.isidentifier() else "roles")
        if fields.get("name", name) != name:
            raise Invalid("roles: the name of a role differs from its key")
        given, warnings = read_role({**fields, "name": name}, "roles")
        call.warnings.extend(warnings)
        return given


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    found = _VERSION.fullmatch(if_match.strip())
    if found is None:
        raise Invalid("If-Match: must be a version")
    return int(found[1])


def _shown(row: Row, roles: dict[str, RoleRecord]) -> dict[str, Any]:
    return {
        "application_id": row["application_id"],
        **{name: row[name] for name in SECTIONS},
        "roles": {name: shown(role) for name, role in sorted(roles.items())},
        "version": row["version"],
        "updated_at": row["updated_at"],
    }


def _audited(schema: dict[str, Any]) -> dict[str, Any]:
    """Roles have entries of their own."""
    return {name: schema[name] for name in SECTIONS}
