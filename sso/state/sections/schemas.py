"""``schemas`` and ``roles``, both by application id. They are judged together, as a save of a schema does it."""

from dataclasses import dataclass, field, replace
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.errors import InvalidInput
from sso.perm.input.names import read_application_key
from sso.perm.input.roles import read_role
from sso.perm.input.schema import read_schema
from sso.perm.roles import save_role, shown
from sso.perm.schemas import SECTIONS, read_schema_roles, save_schema
from sso.perm.stores import builtin_roles
from sso.perm.stores import roles as role_store
from sso.perm.stores.audit import AuditActor
from sso.state.location import DocumentError, UniqueKeys, by_key, checked, joined, records, said_at
from sso.state.sections.applications import LIVING, living
from sso.state.summary import CHANGED, CREATED, ApplySummary

ROLE_FIELDS = frozenset(("name", *role_store.FIELDS))
SCHEMA_FIELDS = frozenset((*SECTIONS, "roles", "application_id", "version", "updated_at"))

_ALL = Statement(
    f"SELECT a.application_id, a.login, a.public_data, a.private_data, a.secret_data {LIVING} ORDER BY a.application_id"
)


@dataclass
class SchemaPart:
    """What the document says about one application."""

    id: int
    first: str  # the place where it is named first
    place: str = ""  # of its schema, if one is given
    given: dict[str, Any] = field(default_factory=dict)
    roles: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # each with its place


def read(schemas: object, roles: object, warnings: list[str]) -> list[SchemaPart]:
    found: dict[int, SchemaPart] = {}
    once = UniqueKeys()
    for place, key, item in by_key("schemas", schemas):
        part = _part(found, place, key)
        part.place = place
        data = checked(place, item, SCHEMA_FIELDS)
        with said_at(place):
            part.given, more = read_schema(data)
            inside, even_more = read_schema_roles(data)
        warnings += [joined(place, warning) for warning in more + even_more]
        for role in inside:
            once(f"{place}.roles.{role['name']}", (part.id, role["name"]))
            part.roles.append((f"{place}.roles.{role['name']}", role))
    for section, key, items in by_key("roles", roles):
        part = _part(found, section, key)
        for place, item in records(section, items, ROLE_FIELDS):
            with said_at(place):
                role, more = read_role(item)
            warnings += [joined(place, warning) for warning in more]
            once(f"{place}.name", (part.id, role["name"]))
            part.roles.append((place, role))
    return list(found.values())


def _part(found: dict[int, SchemaPart], place: str, key: str) -> SchemaPart:
    try:
        application_id = read_application_key(key, place)
    except InvalidInput as error:
        raise DocumentError(error.message) from None
    return found.setdefault(application_id, SchemaPart(application_id, place))


async def apply(tx: Transaction, actor: AuditActor, tally: ApplySummary, parts: list[SchemaPart]) -> None:
    for part in parts:
        with tally.at(part.first):
            old = await living(tx, part.id, prefix="")
        known = await role_store.read_roles(tx, part.id)
        schema = builtin_roles.complete_schema(old, part.given)
        for place, role in part.roles:
            with tally.at(place):
                before = known.get(role["name"])
                if before is not None and replace(before, **role) == before:
                    tally.changed(place, changed=False)
                    continue
                await save_role(tx, actor, part.id, old["project_id"], schema, known, role)
                tally.note(place, CREATED if before is None else CHANGED)
        if part.place:
            with tally.at(part.place):
                changed = any(getattr(schema, name) != old[name] for name in part.given)
                if changed:
                    await save_schema(tx, actor, old, schema, known)
                tally.changed(part.place, changed=changed)


async def export(tx: Transaction) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the central application only what differs from how it ships: a later version may ship it otherwise."""
    schemas: dict[str, Any] = {}
    roles: dict[str, Any] = {}
    shipped = {role.name: role for role in builtin_roles.ROLES}
    for row in await tx.rows(_ALL):
        wanted: int = row["application_id"]
        sections = {name: row[name] for name in SECTIONS}
        if wanted != CENTRAL_APPLICATION_ID or Schema(**sections) != builtin_roles.SCHEMA:
            schemas[str(wanted)] = sections
        known: dict[str, RoleRecord] = await role_store.read_roles(tx, wanted)
        kept = [
            role
            for name, role in sorted(known.items())
            if wanted != CENTRAL_APPLICATION_ID or role != shipped.get(name)
        ]
        if kept:
            roles[str(wanted)] = [shown(role) for role in kept]
    return schemas, roles
