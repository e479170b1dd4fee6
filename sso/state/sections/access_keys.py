"""Section ``access_keys``: records by value; the database stores only a digest. Exports leave them out."""

from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.field_errors import FieldError, FieldPath
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.db.transaction import Transaction
from sso.perm.input.access_keys import AccessKeyRecord
from sso.perm.input.model import read_record
from sso.perm.stores.access_keys import add_access_key, lock_access_key, set_access_key_comment
from sso.state.location import UniqueKeys, read_records
from sso.state.sections.applications import lock_active_application
from sso.state.summary import CREATED, ApplySummary

SECTION = "access_keys"
FIELDS = frozenset(AccessKeyRecord.model_fields)


class AccessKeyPart(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"secret", "comment"})

    location: FieldPath
    application_id: int
    secret: str
    comment: str | None


def read(value: object) -> list[AccessKeyPart]:
    parts = []
    unique = UniqueKeys()
    for location, item in read_records((SECTION,), value, FIELDS):
        fields, _ = read_record(AccessKeyRecord, item, location)
        part = AccessKeyPart(location, fields["application_id"], fields["hash"], fields.get("comment"))
        unique.add((*location, "hash"), part.secret)
        parts.append(part)
    return parts


async def apply(
    tx: Transaction, actor: AuditActor, keyring: Keyring, summary: ApplySummary, parts: list[AccessKeyPart]
) -> None:
    for part in parts:
        with summary.at(part.location):
            application = await lock_active_application(tx, part.application_id)
            project_id = application["project_id"]
            old = await lock_access_key(tx, part.secret)
            if old is None:
                await add_access_key(
                    tx, actor, keyring, part.application_id, project_id, part.comment or "", part.secret
                )
                summary.record(part.location, CREATED)
                continue
            if old["application_id"] != part.application_id:
                raise FieldError(("hash",), "this key belongs to another application")
            changed = part.comment not in (None, old["comment"])
            if changed:
                await set_access_key_comment(tx, actor, old, project_id, part.comment or "")
            summary.record_change(part.location, changed=changed)
