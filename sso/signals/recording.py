"""Records signals in the transaction of the change. The operations of users call it through what they call anyway:
their events in the history of the account, in the stream of changes, and the end of their sessions at sites."""

from collections.abc import Iterable, Sequence
from typing import Any

from sso.db.transaction import Row, Transaction
from sso.signals.event_types import SignalType
from sso.signals.recording_store import insert_session_signals, insert_signals

PUSH_TOPIC = "signals"  # streams whose events are pushed may have new ones, and so may others

# The security history of accounts: what has changed, in which way, and why.
_CREDENTIAL_CHANGES = {
    "password_changed": ("password", "update", "The password was changed"),
    "password_reset": ("password", "update", "The password was reset with a link that was mailed"),
    "totp_added": ("app", "create", "An authenticator app was set up"),
    "totp_removed": ("app", "delete", "The authenticator app was removed"),
    "email_codes_on": ("email-code", "create", "Codes by e-mail were turned on"),
    "email_codes_off": ("email-code", "delete", "Codes by e-mail were turned off"),
    "factors_reset": ("second-factors", "revoke", "Support has removed all second factors"),
    "recovery_codes_created": ("recovery-codes", "create", "Recovery codes were created"),
    "passkey_added": ("fido2-platform", "create", "A passkey was added"),
    "passkey_removed": ("fido2-platform", "delete", "A passkey was removed"),
}
# The stream of changes: what has become of the account.
_ACCOUNT_CHANGES = {
    "user_disabled": SignalType.ACCOUNT_DISABLED,
    "user_banned": SignalType.ACCOUNT_DISABLED,
    "user_deleted": SignalType.ACCOUNT_DISABLED,
    "user_enabled": SignalType.ACCOUNT_ENABLED,
    "user_unbanned": SignalType.ACCOUNT_ENABLED,
    "user_restored": SignalType.ACCOUNT_ENABLED,
}
_SESSION_ENDED = {"reason_admin": {"en": "The session has ended"}}
_SESSIONS_ENDED = {"reason_admin": {"en": "All sessions and tokens of the user have ended"}}


def stream_topic(stream_id: str) -> str:
    """The stream, whose events are polled, has new ones."""
    return f"signals:{stream_id}"


async def record_history_signal(tx: Transaction, user_id: str, kind: str) -> None:
    """Signals what an event of the security history tells, if it is about a credential."""
    if change := _CREDENTIAL_CHANGES.get(kind):
        credential, how, reason = change
        data = {"credential_type": credential, "change_type": how, "reason_admin": {"en": reason}}
        await _record(tx, user_id, SignalType.CREDENTIAL_CHANGE, data)


async def record_account_signal(
    tx: Transaction, user_id: str | None, change: str, application_id: int | None, data: Any
) -> None:
    """Signals what an event of the stream of changes tells, if it is about an account.

    A ban at an application or in a project is told to the clients there.
    """
    if user_id is None or (signal := _ACCOUNT_CHANGES.get(change)) is None:
        return
    scope = data.get("scope")
    project_id = scope.get("project_id") if isinstance(scope, dict) else None
    await _record(tx, user_id, signal, {}, application_id=application_id, project_id=project_id)


async def record_purged_account(tx: Transaction, user_id: str) -> None:
    """Signals that the account no longer exists. To be called before its rows are deleted."""
    await _record(tx, user_id, SignalType.ACCOUNT_PURGED, {})


async def record_new_address(tx: Transaction, user_id: str, old: str, new: str) -> None:
    """Signals another login, which is an address, to the clients that the user has given access to it."""
    await _record(tx, user_id, SignalType.IDENTIFIER_CHANGED, {"new-value": new}, email=old)


async def record_new_totp_secret(tx: Transaction, user_id: str) -> None:
    """Signals that an administrator has set the secret of an authenticator app."""
    data = {"credential_type": "app", "change_type": "update", "initiating_entity": "admin"}
    reason = {"reason_admin": {"en": "An administrator has set up an authenticator app"}}
    await _record(tx, user_id, SignalType.CREDENTIAL_CHANGE, data | reason)


async def record_ended_sessions(
    tx: Transaction,
    user_id: str,
    *,
    sids: Sequence[str] | None = None,
    kept_sid: str | None = None,
    client_id: str | None = None,
) -> None:
    """Signals the end of some sessions, or of all of them. ``client_id`` restricts this to one client."""
    if sids is None and kept_sid is None:
        await _record(tx, user_id, SignalType.SESSION_REVOKED, _SESSIONS_ENDED, client_id=client_id)
    else:
        _wake(tx, await insert_session_signals(tx, user_id, sids, kept_sid, _SESSION_ENDED))


async def _record(
    tx: Transaction,
    user_id: str,
    signal: SignalType,
    data: dict[str, Any],
    *,
    email: str | None = None,
    client_id: str | None = None,
    application_id: int | None = None,
    project_id: str | None = None,
) -> None:
    signals = [(signal, data, email)]
    _wake(tx, await insert_signals(tx, user_id, signals, client_id, application_id, project_id))


def _wake(tx: Transaction, streams: Iterable[Row]) -> None:
    for row in streams:
        tx.publish_after_commit(PUSH_TOPIC if row["method"] == "push" else stream_topic(row["stream_id"]))
