"""Section ``applications``: records by application id."""

from typing import Any

from msgspec import Struct

from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.field_errors import FieldError, FieldPath
from sso.db.transaction import Row, Transaction
from sso.perm.input.application import ApplicationRecord, read_application_fields
from sso.perm.input.assertions import read_assertions
from sso.perm.stores.application_keys import has_key_file
from sso.perm.stores.applications import (
    create_application,
    key_file_conflict,
    private_key,
    refuse_removed_application,
    save_application,
)
from sso.perm.stores.assertions import save_assertions
from sso.perm.stores.locks import lock_application_if_exists
from sso.perm.stores.record_lists import list_applications
from sso.state.location import UniqueKeys, read_records
from sso.state.summary import CREATED, ApplySummary

SECTION = "applications"
FIELDS = frozenset(ApplicationRecord.model_fields)


class ApplicationPart(Struct, frozen=True):
    location: FieldPath
    id: int
    fields: dict[str, Any]
    assertions: list[str] | None


def read(value: object, warnings: list[str]) -> list[ApplicationPart]:
    parts = []
    unique = UniqueKeys()
    for location, item in read_records((SECTION,), value, FIELDS):
        fields, more = read_application_fields(item, location, ApplicationRecord)
        warnings += more
        application_id, assertions = fields.pop("application_id"), None
        if "assertions" in fields:
            assertions = read_assertions(fields.pop("assertions"), (*location, "assertions"))
        unique.add((*location, "application_id"), application_id)
        parts.append(ApplicationPart(location, application_id, fields, assertions))
    return parts


async def apply(
    tx: Transaction, actor: AuditActor, keyring: Keyring, summary: ApplySummary, parts: list[ApplicationPart]
) -> None:
    for part in parts:
        with summary.at(part.location):
            old = await lock_application_if_exists(tx, part.id)
            if old is None:
                created = await create_application(tx, actor, keyring, part.fields, part.id)
                await save_assertions(tx, actor, created, part.assertions or [])
                summary.record(part.location, CREATED)
                continue
            changes = _changes(keyring, old, part.fields)
            if "project_id" in changes and await has_key_file(tx, part.id):
                raise key_file_conflict()
            if changes or old["removed"]:
                await save_application(tx, actor, keyring, part.id, changes)
            new_assertions = part.assertions is not None and part.assertions != old["assertions"]
            if part.assertions is not None and new_assertions:
                await save_assertions(tx, actor, old, part.assertions)
            summary.record_change(part.location, changed=bool(changes) or new_assertions)


def _changes(keyring: Keyring, old: Row, fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields that differ; of settings and service_meta only the members that differ.

    Moving an application to another project removes its keys, so keys that the document names are set again.
    """
    merged = {"settings": old["settings"], "service_meta": old["service_meta"]}
    merged["service_meta"] = merged["service_meta"] | {"private_key": private_key(keyring, old)}
    changes = {name: value for name, value in fields.items() if name not in merged and value != old[name]}
    if "project_id" in changes:
        removed_by_move = {"public_key", "private_key"}
        merged["service_meta"] = {
            name: value for name, value in merged["service_meta"].items() if name not in removed_by_move
        }
    for field, stored in merged.items():
        members = {name: value for name, value in fields.get(field, {}).items() if value != stored.get(name)}
        changes |= {field: members} if members else {}
    return changes


async def lock_active_application(tx: Transaction, application_id: int, path: FieldPath = ("application_id",)) -> Row:
    """Locks and returns the application. Raises an error if it does not exist, or it or its project is removed."""
    row = await lock_application_if_exists(tx, application_id)
    if row is None:
        raise FieldError(path, "there is no such application")
    await refuse_removed_application(tx, row)
    return row


async def export(tx: Transaction) -> list[dict[str, Any]]:
    names = ("application_id", "name", "description", "project_id", "settings", "service_meta")
    return [
        {name: row[name] for name in names} | ({"assertions": row["assertions"]} if row["assertions"] else {})
        for row in await list_applications(tx)
    ]
