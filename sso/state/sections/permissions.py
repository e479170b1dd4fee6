"""Section ``permissions``: data and roles of users at applications, by user and application."""

from dataclasses import dataclass
from typing import Any

from sso.audit.trail import AuditActor
from sso.core.field_errors import FieldError, FieldPath
from sso.db.transaction import Transaction
from sso.perm.engine.records import Assignment
from sso.perm.engine.reserved_names import SECTIONS
from sso.perm.input import validators
from sso.perm.input.names import read_application_id
from sso.perm.input.roles import read_assignments
from sso.perm.input.schema import USER_DATA_FIELDS, read_own_data
from sso.perm.stores.record_lists import list_user_records
from sso.perm.stores.roles import read_roles
from sso.perm.stores.user_data import read_record, record_json, save_record
from sso.state.location import UniqueKeys, error_location, located_warnings, read_records
from sso.state.sections.applications import lock_active_application
from sso.state.sections.user_references import find_user_id
from sso.state.summary import ApplySummary

SECTION = "permissions"
FIELDS = frozenset(("user_id", "application_id", "data"))


@dataclass(frozen=True)
class PermissionPart:
    location: FieldPath
    user: str  # user id or login
    application_id: int
    fields: dict[str, Any]  # login, public_data, private_data and so on
    roles: tuple[Assignment, ...] | None


def read(value: object, warnings: list[str]) -> list[PermissionPart]:
    parts = []
    for location, item in read_records((SECTION,), value, FIELDS):
        with error_location(location):
            user = validators.read_text(item.get("user_id"), ("user_id",), 320, min_length=1)
            application_id = read_application_id(item.get("application_id"), ("application_id",))
            if "data" not in item:
                raise FieldError(("data",), "is required")
            data = validators.read_object(item["data"], ("data",))
        with error_location((*location, "data")):
            fields, more = read_own_data({name: data[name] for name in SECTIONS if name in data})
            roles = None
            if "roles" in data:
                roles, role_warnings = read_assignments(data["roles"])
                more = more + role_warnings
        more = more + validators.unknown_field_warnings(data, USER_DATA_FIELDS, ())
        warnings += located_warnings((*location, "data"), more)
        parts.append(PermissionPart(location, user, application_id, fields, roles))
    return parts


async def apply(tx: Transaction, actor: AuditActor, summary: ApplySummary, parts: list[PermissionPart]) -> None:
    unique = UniqueKeys()
    for part in parts:
        with summary.at(part.location):
            user_id = await find_user_id(tx, part.user, ("user_id",))
            row = await lock_active_application(tx, part.application_id)
        unique.add(part.location, (user_id, part.application_id))
        with summary.at((*part.location, "data")):
            known = await read_roles(tx, part.application_id)
            before = await read_record(tx, user_id, part.application_id)
            after = await save_record(tx, actor, user_id, row, known, part.fields, part.roles)
        summary.record_change(part.location, changed=after != before)


async def export(tx: Transaction) -> list[dict[str, Any]]:
    """Exports the records that are not empty."""
    exported = []
    for user_id, application_id in await list_user_records(tx):
        data = record_json(await read_record(tx, user_id, application_id))
        if data:
            exported.append({"user_id": user_id, "application_id": application_id, "data": data})
    return exported
