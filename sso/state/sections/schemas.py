"""Sections ``schemas`` and ``roles``, both by application id. They are checked together, as the API does."""

from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from sso.audit.trail import AuditActor
from sso.core.field_errors import FieldPath
from sso.db.transaction import Transaction
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, SECTIONS
from sso.perm.input.names import read_application_key
from sso.perm.input.protected_rules import protected_rules
from sso.perm.input.roles import RoleFields, read_role
from sso.perm.input.schema import read_schema, read_schema_roles
from sso.perm.stores import builtin_roles
from sso.perm.stores import roles as role_store
from sso.perm.stores.record_lists import list_applications
from sso.perm.stores.roles import role_json, save_role
from sso.perm.stores.schemas import save_schema
from sso.state.location import (
    UniqueKeys,
    check_fields,
    read_members,
    read_records,
)
from sso.state.sections.applications import lock_active_application
from sso.state.summary import CHANGED, CREATED, ApplySummary

ROLE_FIELDS = frozenset(RoleFields.model_fields) - {"application_id"}
SCHEMA_FIELDS = frozenset((*SECTIONS, "roles", "application_id", "version", "updated_at"))


class SchemaPart(Struct):
    """The schema and the roles of one application."""

    id: int
    first_location: FieldPath  # where the application is named first
    location: FieldPath = ()  # where its schema is; empty if the document has none
    fields: dict[str, Any] = field(default_factory=dict)
    roles: list[tuple[FieldPath, dict[str, Any]]] = field(default_factory=list)  # (location, role)


def read(schemas: object, roles: object, warnings: list[str]) -> list[SchemaPart]:
    parts: dict[int, SchemaPart] = {}
    unique = UniqueKeys()
    for location, key, item in read_members("schemas", schemas):
        part = _part(parts, location, key)
        part.location = location
        data = check_fields(location, item, SCHEMA_FIELDS)
        part.fields, more = read_schema(data, location)
        schema_roles, role_warnings = read_schema_roles(data, location)
        warnings += more + role_warnings
        for role in schema_roles:
            unique.add((*location, "roles", role["name"]), (part.id, role["name"]))
            part.roles.append(((*location, "roles", role["name"]), role))
    for section, key, items in read_members("roles", roles):
        part = _part(parts, section, key)
        for location, item in read_records(section, items, ROLE_FIELDS):
            role, more = read_role(item, location)
            warnings += more
            unique.add((*location, "name"), (part.id, role["name"]))
            part.roles.append((location, role))
    return list(parts.values())


def _part(parts: dict[int, SchemaPart], location: FieldPath, key: str) -> SchemaPart:
    application_id = read_application_key(key, location)
    return parts.setdefault(application_id, SchemaPart(application_id, location))


async def apply(tx: Transaction, actor: AuditActor, summary: ApplySummary, parts: list[SchemaPart]) -> None:
    for part in parts:
        with summary.at(part.first_location):
            old = await lock_active_application(tx, part.id, path=())
        known = await role_store.read_roles(tx, part.id)
        schema = builtin_roles.complete_schema(old, part.fields)
        protected = await tx.run_in_thread(protected_rules, schema)
        for location, role in part.roles:
            with summary.at(location):
                before = known.get(role["name"])
                if before is not None and replace(before, **role) == before:
                    summary.record_change(location, changed=False)
                    continue
                await save_role(tx, actor, part.id, old["project_id"], protected, known, role)
                summary.record(location, CREATED if before is None else CHANGED)
        if part.location:
            with summary.at(part.location):
                changed = any(getattr(schema, name) != old[name] for name in part.fields)
                if changed:
                    await save_schema(tx, actor, old, schema, known)
                summary.record_change(part.location, changed=changed)


async def export(tx: Transaction) -> tuple[dict[str, Any], dict[str, Any]]:
    """Exports the schemas and roles; of the central application only those that differ from the built-in ones.

    A later version may have other built-in roles, which an import must not overwrite.
    """
    schemas: dict[str, Any] = {}
    roles: dict[str, Any] = {}
    builtin = {role.name: role for role in builtin_roles.ROLES}
    for row in await list_applications(tx):
        application_id: int = row["application_id"]
        sections = {name: row[name] for name in SECTIONS}
        if application_id != CENTRAL_APPLICATION_ID or Schema(**sections) != builtin_roles.SCHEMA:
            schemas[str(application_id)] = sections
        known: dict[str, RoleRecord] = await role_store.read_roles(tx, application_id)
        kept = [
            role
            for name, role in sorted(known.items())
            if application_id != CENTRAL_APPLICATION_ID or role != builtin.get(name)
        ]
        if kept:
            roles[str(application_id)] = [role_json(role) for role in kept]
    return schemas, roles
