"""``permissions``: what users have at applications, by user and application."""

from dataclasses import dataclass
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.decode import decode_assignments
from sso.perm.engine.render import render_assignment
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import read_application_id
from sso.perm.input.schema import read_own_data
from sso.perm.stores import roles as role_store
from sso.perm.stores.audit import AuditActor
from sso.perm.user_data import KNOWN, SECTIONS, read_record, save_record
from sso.state.location import UniqueKeys, joined, records, said_at
from sso.state.sections.applications import LIVING, living
from sso.state.sections.people import user_named
from sso.state.summary import ApplySummary

SECTION = "permissions"
FIELDS = frozenset(("user_id", "application_id", "data"))

_ALL = Statement(
    f"""SELECT user_id, application_id FROM (
        SELECT user_id, application_id FROM user_records UNION SELECT user_id, application_id FROM role_assignments) r
    JOIN users USING (user_id) JOIN (SELECT a.application_id {LIVING}) a USING (application_id)
    ORDER BY application_id, length(user_id), user_id"""  # noqa: S608 - the parts are ours
)


@dataclass(frozen=True)
class PermissionPart:
    place: str
    user: str  # user id or login
    application_id: int
    given: dict[str, Any]  # the sections
    roles: list[Any] | None


def read(value: object, warnings: list[str]) -> list[PermissionPart]:
    found = []
    for place, item in records(SECTION, value, FIELDS):
        with said_at(place):
            user = validators.text(item.get("user_id"), "user_id", 320, least=1)
            wanted = read_application_id(item.get("application_id"), "application_id")
            if "data" not in item:
                raise InvalidInput("data: is required")
            data = validators.an_object(item["data"], "data")
        with said_at(f"{place}.data"):
            given, more = read_own_data({name: data[name] for name in SECTIONS if name in data})
            roles = validators.an_array(data["roles"], "roles") if "roles" in data else None
        more = more + validators.unknown(data, KNOWN, "")
        warnings += [joined(f"{place}.data", warning) for warning in more]
        found.append(PermissionPart(place, user, wanted, given, roles))
    return found


async def apply(tx: Transaction, actor: AuditActor, tally: ApplySummary, parts: list[PermissionPart]) -> None:
    once = UniqueKeys()
    for part in parts:
        with tally.at(part.place):
            user_id = await user_named(tx, part.user, "user_id")
            row = await living(tx, part.application_id)
        once(part.place, (user_id, part.application_id))
        with tally.at(f"{part.place}.data"):
            known = await role_store.read_roles(tx, part.application_id)
            before = await read_record(tx, user_id, part.application_id)
            after = await save_record(tx, actor, user_id, row, known, part.given, part.roles, 0)
        tally.changed(part.place, changed=after != before)


async def export(tx: Transaction) -> list[dict[str, Any]]:
    """Only the parts that hold something."""
    found = []
    for row in await tx.rows(_ALL):
        names = {"user_id": row["user_id"], "application_id": row["application_id"]}
        record = await read_record(tx, **names)
        data = {name: record[name] for name in SECTIONS if record[name]}
        if record["roles"]:
            data["roles"] = [render_assignment(item) for item in decode_assignments(record["roles"])]
        if data:
            found.append({**names, "data": data})
    return found
