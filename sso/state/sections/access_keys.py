"""``access_keys``: by their value, which the database knows as a digest. They are never exported."""

import re
from dataclasses import dataclass
from typing import Any

from sso.db.transaction import Transaction
from sso.perm.caller import JWT_DOTS
from sso.perm.credentials.access_keys import AccessKeys
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.input import validators
from sso.perm.input.names import read_application_id
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditActor
from sso.state.location import UniqueKeys, records, said_at
from sso.state.sections.applications import living
from sso.state.summary import CREATED, ApplySummary

SECTION = "access_keys"
FIELDS = frozenset(("application_id", "hash", "comment"))

_HASH = re.compile(r"[!-~]{32,512}")


@dataclass(frozen=True)
class AccessKeyPart:
    place: str
    application_id: int
    secret: str
    comment: str | None

    def __repr__(self) -> str:
        return f"AccessKeyPart({self.place})"


def read(value: object) -> list[AccessKeyPart]:
    found = []
    once = UniqueKeys()
    for place, item in records(SECTION, value, FIELDS):
        with said_at(place):
            part = AccessKeyPart(
                place,
                read_application_id(item.get("application_id"), "application_id"),
                _hash(item.get("hash")),
                validators.read_text(item["comment"], "comment", 256) if "comment" in item else None,
            )
        once(f"{place}.hash", part.secret)
        found.append(part)
    return found


def _hash(value: object) -> str:
    """It travels as a bearer token, and must not be taken for a JWT there."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise InvalidInput("hash: must be 32 to 512 printable ASCII characters without spaces")
    if value.count(".") == JWT_DOTS:
        raise InvalidInput("hash: with two dots it would look like a JWT")
    return value


async def apply(
    tx: Transaction, actor: AuditActor, keys: AccessKeys, tally: ApplySummary, parts: list[AccessKeyPart]
) -> None:
    for part in parts:
        with tally.at(part.place):
            application = await living(tx, part.application_id)
            about: dict[str, Any] = {
                "project_id": application["project_id"],
                "application_id": part.application_id,
            }
            old = await keys.find(tx, part.secret)
            if old is None:
                key = await keys.add(tx, part.application_id, part.comment or "", part.secret)
                await audit.write(tx, actor, "access_key.create", key["id"], None, key, **about)
                tally.note(part.place, CREATED)
                continue
            if old["application_id"] != part.application_id:
                raise PermissionConflict("hash: is a key of another application")
            changed = part.comment not in (None, old["comment"])
            if changed:
                await keys.describe(tx, old["id"], part.comment or "")
                before, after = {"comment": old["comment"]}, {"comment": part.comment}
                await audit.write(tx, actor, "access_key.save", old["id"], before, after, **about)
            tally.changed(part.place, changed=changed)
