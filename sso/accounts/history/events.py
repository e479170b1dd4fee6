"""Events of the security history (table ``account_events``), written in the transaction of what they tell."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

from sso.accounts.history.change_limit import CHANGES, TooManyChanges
from sso.accounts.history.store import insert_event, insert_failure
from sso.db.transaction import Runner, Transaction
from sso.signals.recording import record_history_signal

SUPPORT = "support"  # the value of ``by`` in the details of an event that an administrator has caused

_supporter: ContextVar[str | None] = ContextVar("supporter", default=None)  # a user id; "" for other callers


class EventKind(StrEnum):
    """What happened. ``texts.py`` says it to people; ``detail`` has what distinguishes events of one kind."""

    REGISTERED = "registered"
    SIGNED_IN = "signed_in"  # detail: auth; for games and programs app_id and gapp_id
    SIGN_IN_FAILED = "sign_in_failed"
    CODE_FAILED = "code_failed"
    SESSION_ENDED = "session_ended"  # detail: device
    SIGNED_OUT_ELSEWHERE = "signed_out_elsewhere"
    GAME_ENDED = "game_ended"  # detail: name
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 - not a password
    PASSWORD_RESET = "password_reset"  # noqa: S105 - not a password
    TOTP_ADDED = "totp_added"
    TOTP_REMOVED = "totp_removed"
    EMAIL_CODES_ON = "email_codes_on"
    EMAIL_CODES_OFF = "email_codes_off"
    FACTORS_RESET = "factors_reset"
    RECOVERY_CODES_CREATED = "recovery_codes_created"
    RECOVERY_CODE_USED = "recovery_code_used"
    PASSKEY_ADDED = "passkey_added"  # detail: name
    PASSKEY_REMOVED = "passkey_removed"  # detail: name
    EMAIL_VERIFIED = "email_verified"
    EMAIL_CHANGED = "email_changed"
    EMAIL_UNDO_REQUESTED = "email_undo_requested"
    EMAIL_UNDO_ENDED = "email_undo_ended"
    EMAIL_CHANGE_UNDONE = "email_change_undone"
    IDENTITY_LINKED = "identity_linked"  # detail: name
    IDENTITY_UNLINKED = "identity_unlinked"  # detail: name
    DEVICE_KEY_REMOVED = "device_key_removed"
    USER_MERGED = "user_merged"
    SITE_GRANTED = "site_granted"  # detail: name
    SITE_REMOVED = "site_removed"  # detail: name
    TERMS_ACCEPTED = "terms_accepted"  # detail: name, the version
    NOTICES_ON = "notices_on"
    NOTICES_OFF = "notices_off"
    PROFILE_CHANGED = "profile_changed"
    DATA_EXPORTED = "data_exported"
    OPENED_BY_SUPPORT = "opened_by_support"
    BANNED = "banned"  # detail: app_id, of a ban at one application
    UNBANNED = "unbanned"
    DELETION_REQUESTED = "deletion_requested"
    DELETION_CANCELLED = "deletion_cancelled"


# What a user could do any number of times. What removes something is not limited: it was added before, and a thief must
# not be able to use up the attempts of the owner.
_LIMITED = frozenset(
    (
        EventKind.SIGNED_OUT_ELSEWHERE,
        EventKind.PASSWORD_CHANGED,
        EventKind.PASSWORD_RESET,
        EventKind.TOTP_ADDED,
        EventKind.EMAIL_CODES_ON,
        EventKind.RECOVERY_CODES_CREATED,
        EventKind.PASSKEY_ADDED,
        EventKind.IDENTITY_LINKED,
        EventKind.NOTICES_OFF,
        EventKind.PROFILE_CHANGED,
        EventKind.DELETION_REQUESTED,
    )
)


@contextmanager
def by_support(actor_id: str) -> Iterator[None]:
    """Within the block, changes of other users are those of support: players do not learn the address of an
    administrator. ``actor_id`` is the user who makes them, "" for service clients and operators.
    """
    token = _supporter.set(actor_id)
    try:
        yield
    finally:
        _supporter.reset(token)


async def record_event(tx: Transaction, user_id: str, kind: EventKind, **detail: Any) -> None:
    """Adds an event to the history of the user, with address and browser of the current request. Clients that have a
    stream of signals and know the user are told about a change of a credential.

    Outside a request, a command has caused it. Details are shown to the user; they contain no secrets. Raises
    TooManyChanges if the user has caused MAX_CHANGES of this kind within an hour.
    """
    from sso.web.request_origin import request_origin  # Quart, which commands that only read do not need

    origin = request_origin() if _supporter.get() in (None, user_id) else None
    if origin is None:
        detail = {"by": SUPPORT, **detail}
    elif kind in _LIMITED and (wait_s := await CHANGES.add(tx, f"{user_id} {kind}")):
        if kind is EventKind.SIGNED_OUT_ELSEWHERE:  # it protects the account, and works without an entry
            return
        raise TooManyChanges(wait_s)
    address, device = origin or ("", "")
    await insert_event(tx, user_id, kind, address, device, detail)
    await record_history_signal(tx, user_id, kind)


async def record_failure(tx: Runner, user_id: str, kind: EventKind, address: str, attempts: int = 1) -> None:
    """Adds failed attempts, or counts them in the row of similar ones."""
    await insert_failure(tx, user_id, kind, address, attempts)
