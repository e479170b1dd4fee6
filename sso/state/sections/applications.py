"""``applications``, by their ids."""

from dataclasses import dataclass
from typing import Any

from sso.core.encryption import Keyring
from sso.core.errors import Forbidden
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.perm.errors import InvalidInput
from sso.perm.input.application import read_application_fields
from sso.perm.input.names import read_application_id
from sso.perm.stores.applications import create_application, lock_row, private_key, save_application
from sso.perm.stores.audit import AuditActor
from sso.state.location import UniqueKeys, joined, records, said_at
from sso.state.summary import CREATED, ApplySummary

SECTION = "applications"
FIELDS = frozenset(("application_id", "name", "description", "project_id", "settings", "service_meta"))

# What is removed, or belongs to a removed project, is no part of the state that is wanted.
LIVING = """FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE NOT a.removed AND p.removed IS NOT TRUE"""
_ALL = Statement(f"SELECT a.* {LIVING} ORDER BY a.application_id")
_PROJECT_REMOVED = Statement("SELECT removed FROM projects WHERE id = :id")


@dataclass(frozen=True)
class ApplicationPart:
    place: str
    id: int
    given: dict[str, Any]


def read(value: object, warnings: list[str]) -> list[ApplicationPart]:
    found = []
    once = UniqueKeys()
    for place, item in records(SECTION, value, FIELDS):
        with said_at(place):
            wanted = read_application_id(item.get("application_id"), "application_id")
            given, more = read_application_fields(item)
        once(f"{place}.application_id", wanted)
        found.append(ApplicationPart(place, wanted, given))
        warnings += [joined(place, warning) for warning in more]
    return found


async def apply(
    tx: Transaction, actor: AuditActor, keyring: Keyring, tally: ApplySummary, parts: list[ApplicationPart]
) -> None:
    for part in parts:
        with tally.at(part.place):
            old = await lock_row(tx, part.id)
            if old is None:
                await create_application(tx, actor, keyring, part.given, part.id)
                tally.note(part.place, CREATED)
                continue
            changes = _changes(keyring, old, part.given)
            if changes or old["removed"]:
                await save_application(tx, actor, keyring, part.id, changes)
            tally.changed(part.place, changed=bool(changes))


def _changes(keyring: Keyring, old: Row, given: dict[str, Any]) -> dict[str, Any]:
    """The fields that differ, and of settings and service_meta the members that do. A move ends the keys of an
    application, so those that the document names are given to it again."""
    merged = {"settings": old["settings"], "service_meta": old["service_meta"]}
    merged["service_meta"] = merged["service_meta"] | {"private_key": private_key(keyring, old)}
    changes = {name: value for name, value in given.items() if name not in merged and value != old[name]}
    if "project_id" in changes:
        ended = {"public_key", "private_key"}
        merged["service_meta"] = {name: value for name, value in merged["service_meta"].items() if name not in ended}
    for field, now in merged.items():
        members = {name: value for name, value in given.get(field, {}).items() if value != now.get(name)}
        changes |= {field: members} if members else {}
    return changes


async def living(tx: Transaction, wanted: int, prefix: str = "application_id: ") -> Row:
    """The application, locked: it is there and not removed, and neither is its project."""
    row = await lock_row(tx, wanted)
    if row is None:
        raise InvalidInput(f"{prefix}there is no such application")
    if row["removed"] or (row["project_id"] and await tx.value(_PROJECT_REMOVED, id=row["project_id"])):
        raise Forbidden("removed")
    return row


async def export(tx: Transaction) -> list[dict[str, Any]]:
    names = ("application_id", "name", "description", "project_id", "settings", "service_meta")
    return [{name: row[name] for name in names} for row in await tx.rows(_ALL)]
