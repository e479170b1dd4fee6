"""The events of the stream. An event is recorded in the transaction of the change that it reports."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from sso.change_stream.store import insert_events
from sso.db.transaction import Transaction
from sso.signals.recording import record_account_signal

PENDING_TOPIC = "changes:pending"  # events were committed that have no position yet


class ChangeType(StrEnum):
    PERMISSIONS_CHANGED = "permissions_changed"  # one user at one application; data: gained, lost
    APPLICATION_CHANGED = "application_changed"  # permissions of too many users to list; data: users, their number
    USER_DISABLED = "user_disabled"
    USER_ENABLED = "user_enabled"
    USER_DELETED = "user_deleted"  # the account is closed; data: erasure_due
    USER_RESTORED = "user_restored"  # the account will not be erased
    USER_ERASED = "user_erased"  # the account no longer exists
    USER_MERGED = "user_merged"  # into another one, whose event it is; data: from, into
    USER_UNMERGED = "user_unmerged"  # the merge was undone; data: from, into
    USER_UPGRADED = "user_upgraded"  # a guest has become an account
    USER_BANNED = "user_banned"  # data: ban_id, scope, until, reason
    USER_UNBANNED = "user_unbanned"  # the ban has ended or was lifted; data: ban_id, scope
    KEY_ROTATED = "key_rotated"  # a new signing key of the service; data: kid, algorithm
    KEY_RETIRED = "key_retired"  # its tokens are no longer accepted; data: kid
    APPLICATION_KEY_ADDED = "application_key_added"  # a public key that signs for the application; data: kid
    APPLICATION_KEY_REMOVED = "application_key_removed"
    ACCESS_KEY_CREATED = "access_key_created"  # data: key_id
    ACCESS_KEY_DELETED = "access_key_deleted"
    CLIENT_SECRET_ROTATED = "client_secret_rotated"  # noqa: S105 - of an OAuth client; data: client_id


class Change(Struct, frozen=True):
    type: str  # one of `ChangeType`, or of the events that only replicas read
    user_id: str | None = None
    application_id: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


async def record_changes(tx: Transaction, changes: Sequence[Change]) -> None:
    """Adds events to the stream. They are visible once the transaction is committed, in the order of the sequence.

    Clients that have a stream of signals and know the user are told what has become of an account.
    """
    if not changes:
        return
    await insert_events(
        tx,
        types=[change.type for change in changes],
        user_ids=[change.user_id for change in changes],
        application_ids=[change.application_id for change in changes],
        data=[dict(change.data) for change in changes],
    )
    tx.publish_after_commit(PENDING_TOPIC)
    for change in changes:
        await record_account_signal(tx, change.user_id, change.type, change.application_id, change.data)
