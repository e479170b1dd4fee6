"""``access_keys``: by their value, which the database knows as a digest. They are never exported."""

import re
from dataclasses import dataclass

from sso.core.encryption import Keyring
from sso.core.jwt import looks_like_jwt
from sso.db.database import Transaction
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.input import validators
from sso.perm.input.names import read_application_id
from sso.perm.stores.access_keys import add_access_key, lock_access_key, set_access_key_comment
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
                validators.text(item["comment"], "comment", 256) if "comment" in item else None,
            )
        once(f"{place}.hash", part.secret)
        found.append(part)
    return found


def _hash(value: object) -> str:
    """It travels as a bearer token, and must not be taken for a JWT there."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise InvalidInput("hash: must be 32 to 512 printable ASCII characters without spaces")
    if looks_like_jwt(value):
        raise InvalidInput("hash: with two dots it would look like a JWT")
    return value


async def apply(
    tx: Transaction, actor: AuditActor, keyring: Keyring, tally: ApplySummary, parts: list[AccessKeyPart]
) -> None:
    for part in parts:
        with tally.at(part.place):
            application = await living(tx, part.application_id)
            project_id = application["project_id"]
            old = await lock_access_key(tx, part.secret)
            if old is None:
                await add_access_key(
                    tx, actor, keyring, part.application_id, project_id, part.comment or "", part.secret
                )
                tally.note(part.place, CREATED)
                continue
            if old["application_id"] != part.application_id:
                raise PermissionConflict("hash: is a key of another application")
            changed = part.comment not in (None, old["comment"])
            if changed:
                await set_access_key_comment(tx, actor, old, project_id, part.comment or "")
            tally.changed(part.place, changed=changed)
