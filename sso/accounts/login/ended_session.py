"""Why a browser is signed out: only the browser with the cookie of the ended session is told."""

from collections.abc import Mapping

from sso.accounts.history.events import EventKind
from sso.accounts.session_store import SessionStore
from sso.core.language import Text
from sso.web.cookies import SESSION_COOKIE, read_cookie
from sso.web.language import _

_PASSWORD = _("You were signed out because your password was changed.")
_FACTORS = _("You were signed out because two-step sign-in or a passkey was changed.")
_EMAIL = _("You were signed out because your e-mail address was changed.")
_ELSEWHERE = _("You were signed out from another browser or by support.")
_OTHER = _("You were signed out. Please sign in again.")
_TEXTS: Mapping[str, Text] = {
    EventKind.PASSWORD_CHANGED: _PASSWORD,
    EventKind.PASSWORD_RESET: _PASSWORD,
    **dict.fromkeys(
        (
            EventKind.TOTP_ADDED,
            EventKind.TOTP_REMOVED,
            EventKind.EMAIL_CODES_ON,
            EventKind.EMAIL_CODES_OFF,
            EventKind.FACTORS_RESET,
            EventKind.PASSKEY_ADDED,
            EventKind.PASSKEY_REMOVED,
            EventKind.RECOVERY_CODES_CREATED,
        ),
        _FACTORS,
    ),
    **dict.fromkeys((EventKind.EMAIL_CHANGED, EventKind.EMAIL_CHANGE_UNDONE), _EMAIL),
    **dict.fromkeys((EventKind.SESSION_ENDED, EventKind.SIGNED_OUT_ELSEWHERE), _ELSEWHERE),
}


async def signed_out_notice(sessions: SessionStore) -> Text | None:
    """Returns the notice of the sign-in page for a browser without a session."""
    secret = read_cookie(SESSION_COOKIE)
    kind = await sessions.why_ended(secret) if secret else None
    return None if kind is None else _TEXTS.get(kind, _OTHER)
