"""What the events of the security history say to the user."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from sso.accounts.history.events import SUPPORT, EventKind
from sso.accounts.history.store import AccountEvent
from sso.core.language import Text, current_language, plural

_ = Text

TEXTS = {
    EventKind.REGISTERED: _("Account created"),
    EventKind.SIGNED_IN: _("Signed in"),
    EventKind.SIGN_IN_FAILED: _("Wrong password"),
    EventKind.CODE_FAILED: _("Wrong code after the correct password"),
    EventKind.SESSION_ENDED: _("Signed out"),
    EventKind.SIGNED_OUT_ELSEWHERE: _("Signed out everywhere else"),
    EventKind.GAME_ENDED: _("Signed out of a game"),
    EventKind.PASSWORD_CHANGED: _("Password changed"),
    EventKind.PASSWORD_RESET: _("Forgotten password replaced"),
    EventKind.TOTP_ADDED: _("Authenticator app set up"),
    EventKind.TOTP_REMOVED: _("Authenticator app removed"),
    EventKind.EMAIL_CODES_ON: _("Codes by e-mail turned on"),
    EventKind.EMAIL_CODES_OFF: _("Codes by e-mail turned off"),
    EventKind.FACTORS_RESET: _("Two-step sign-in turned off"),
    EventKind.RECOVERY_CODES_CREATED: _("Recovery codes created"),
    EventKind.RECOVERY_CODE_USED: _("Recovery code used"),
    EventKind.PASSKEY_ADDED: _("Passkey added"),
    EventKind.PASSKEY_REMOVED: _("Passkey removed"),
    EventKind.EMAIL_VERIFIED: _("E-mail address verified"),
    EventKind.EMAIL_CHANGED: _("E-mail address changed"),
    EventKind.EMAIL_UNDO_REQUESTED: _("Undo of the change of the e-mail address requested"),
    EventKind.EMAIL_UNDO_ENDED: _("Links to undo changes of the e-mail address ended"),
    EventKind.EMAIL_CHANGE_UNDONE: _("Change of the e-mail address undone"),
    EventKind.TERMS_ACCEPTED: _("Terms accepted"),
    EventKind.IDENTITY_LINKED: _("Account connected"),
    EventKind.IDENTITY_UNLINKED: _("Connected account removed"),
    EventKind.DEVICE_KEY_REMOVED: _("Device that signs in to games removed"),
    EventKind.USER_MERGED: _("Another user was merged into this account"),
    EventKind.SITE_GRANTED: _("Access given to a site"),
    EventKind.SITE_REMOVED: _("Access of a site removed"),
    EventKind.NOTICES_ON: _("Sign-in notices turned on"),
    EventKind.NOTICES_OFF: _("Sign-in notices turned off"),
    EventKind.PROFILE_CHANGED: _("Profile changed"),
    EventKind.DATA_EXPORTED: _("Data downloaded"),
    EventKind.OPENED_BY_SUPPORT: _("Account page opened"),
    EventKind.BANNED: _("Banned"),
    EventKind.UNBANNED: _("Ban ended"),
    EventKind.DELETION_REQUESTED: _("Deletion of the account requested"),
    EventKind.DELETION_CANCELLED: _("Deletion of the account cancelled"),
}
METHODS = {
    "login": _("with the password"),
    "otp": _("with a second step or a passkey"),
    "passkey": _("with a passkey"),
    "login+passkey": _("with the password and a passkey"),
    "upstream": _("with another provider"),
    "upstream+otp": _("with another provider and a second step"),
    "upstream+passkey": _("with another provider and a passkey"),
    "guest": _("with a key of the device"),
    "gsid": _("confirmed in a browser"),
    "ticket": _("with another provider"),
    "ticket+otp": _("with another provider and a second step"),
}
WARNINGS = (EventKind.SIGN_IN_FAILED, EventKind.CODE_FAILED)


def event_values(event: AccountEvent) -> dict[str, Any]:
    """Returns the values of an event for the template."""
    detail = event.detail
    about = [event.game or detail.get("name"), detail.get("device"), METHODS.get(detail.get("auth", ""))]
    if detail.get("by") == SUPPORT:
        about.append(_("by support"))
    return {
        "title": TEXTS.get(event.kind, event.kind),  # type: ignore[call-overload]
        "about": [text for text in about if text],
        "at": PageMoment.of(event.at, format_time(event.at)),
        "times": repetition(event),
        "address": event.address,
        "device": event.device,
        "warning": event.kind in WARNINGS,
    }


def repetition(event: AccountEvent) -> Text | None:
    if event.times < 2 or event.last_at is None:
        return None
    return plural("%(count)s attempt", "%(count)s attempts", event.times)


class PageMoment(NamedTuple):
    """A moment on a page. A script shows it in the time zone of the reader (times.js)."""

    iso: str
    text: Text | str  # without a script

    @classmethod
    def of(cls, time: datetime, text: Text | str) -> "PageMoment":
        return cls(time.astimezone(UTC).isoformat(timespec="seconds"), text)


def format_time(time: datetime) -> str:
    """Returns date and time to the minute, in UTC and in the language of the page."""
    from babel import dates  # slow to import

    language, utc = current_language.get().replace("-", "_"), time.astimezone(UTC)
    pattern = str(dates.get_datetime_format("medium", locale=language)).replace("'", "")
    hour, day = dates.format_time(utc, "short", locale=language), dates.format_date(utc, "medium", locale=language)
    return f"{pattern.replace('{0}', hour).replace('{1}', day)} UTC"


def format_day(time: datetime) -> str:
    """Returns the date, in UTC and in the language of the page."""
    from babel.dates import format_date

    return format_date(time.astimezone(UTC), "long", locale=current_language.get().replace("-", "_"))
