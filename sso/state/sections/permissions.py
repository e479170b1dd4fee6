"""Section ``permissions``: data and roles of users at applications, by user and application."""

from typing import Any

from msgspec import Struct

from sso.audit.trail import AuditActor
from sso.core.field_errors import FieldPath, field_text
from sso.db.transaction import Row, Transaction
from sso.perm.engine.records import Assignment, RoleRecord
from sso.perm.errors import UserWasMerged
from sso.perm.input.field_types import ApplicationId, UserName
from sso.perm.input.model import InputModel
from sso.perm.input.model import read_record as read_fields
from sso.perm.input.roles import read_assignments
from sso.perm.input.schema import USER_DATA_FIELDS, read_own_data
from sso.perm.input.validators import unknown_field_warnings
from sso.perm.stores.record_lists import list_user_records
from sso.perm.stores.roles import read_roles
from sso.perm.stores.user_data import read_record, record_json, save_record
from sso.state.location import UniqueKeys, read_records
from sso.state.sections.applications import lock_active_application
from sso.state.sections.user_references import find_user_id
from sso.state.summary import ApplySummary
from sso.web.request_model import JsonObject

SECTION = "permissions"


class PermissionRecord(InputModel):
    user_id: UserName
    application_id: ApplicationId
    data: JsonObject


FIELDS = frozenset(PermissionRecord.model_fields)


class PermissionPart(Struct, frozen=True):
    location: FieldPath
    user: str  # user id or login
    application_id: int
    fields: dict[str, Any]  # login, public_data, private_data and so on
    roles: tuple[Assignment, ...] | None


def read(value: object, warnings: list[str]) -> list[PermissionPart]:
    parts = []
    for location, item in read_records((SECTION,), value, FIELDS):
        record, _ = read_fields(PermissionRecord, item, location)
        data, path, roles = record["data"], (*location, "data"), None
        fields, more = read_own_data(data, path=path, limits_names=False)
        warnings += more
        if "roles" in data:
            roles, more = read_assignments(data["roles"], path=(*path, "roles"))
            warnings += more
        warnings += unknown_field_warnings(data, USER_DATA_FIELDS, path)
        parts.append(PermissionPart(location, record["user_id"], record["application_id"], fields, roles))
    return parts


async def apply(tx: Transaction, actor: AuditActor, summary: ApplySummary, parts: list[PermissionPart]) -> None:
    unique = UniqueKeys()
    applications: dict[int, tuple[Row, dict[str, RoleRecord]]] = {}  # locked, with their roles
    for part in parts:
        with summary.at(part.location):
            user_id = await find_user_id(tx, part.user, ("user_id",))
            if part.application_id not in applications:
                row = await lock_active_application(tx, part.application_id)
                applications[part.application_id] = row, await read_roles(tx, part.application_id)
        unique.add(part.location, (user_id, part.application_id))
        row, known = applications[part.application_id]
        with summary.at((*part.location, "data")):
            try:
                saved = await save_record(tx, actor, user_id, row, known, part.fields, part.roles)
            except UserWasMerged:  # players merge their accounts while a document is applied again and again
                summary.warnings.append(f"{field_text(part.location)}: left out: the user was merged into another one")
                continue
        summary.record_change(part.location, changed=saved.is_changed)


async def export(tx: Transaction) -> list[dict[str, Any]]:
    """Exports the records that are not empty."""
    exported = []
    for user_id, application_id in await list_user_records(tx):
        data = record_json(await read_record(tx, user_id, application_id))
        if data:
            exported.append({"user_id": user_id, "application_id": application_id, "data": data})
    return exported
