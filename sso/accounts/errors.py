"""Errors of a login."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sso.accounts.history.texts import format_time
from sso.core.ban import Ban
from sso.core.errors import ApiError, RetryLater
from sso.core.language import Text

if TYPE_CHECKING:
    from sso.accounts.model import User

EVERYWHERE = Text("This account cannot sign in.")
HERE = Text("This account cannot be used here. It still works in other places.")


class InvalidCredentials(ApiError):
    """The same for an unknown user, a wrong password, a wrong code and a disabled user."""

    status = 401
    message = "invalid credentials"


class TooManyAttempts(RetryLater):
    status = 429
    message = "too many attempts, try again later"


class LoginBusy(RetryLater):
    """The queue of passwords to verify is full."""

    status = 503
    message = "too many sign-ins at this moment, try again later"


class SecondFactorBlocked(ApiError):
    """Too many wrong codes in a row have blocked all second factors of the user."""

    status = 403
    message = "second factor blocked after too many wrong codes; an operator must unblock it"


class OtpRequired(ApiError):
    """The password was correct and the second factor is missing."""

    status = 401
    message = "otp required"

    def __init__(self, second_factors: tuple[str, ...], mail_state: Mapping[str, Any]) -> None:
        super().__init__()
        self.extra = {"otp": list(second_factors), **mail_state}


class LoginNotAllowed(ApiError):
    """The credentials are correct, but the user may not log in to this application."""

    status = 403
    code = "access_denied"
    message = "login not allowed"


class Banned(LoginNotAllowed):
    """The credentials are correct, but the user is banned. Pages show why, until when, and where to appeal."""

    message = "banned"
    heading = Text("You are banned")

    def __init__(self, ban: Ban, appeal_url: str) -> None:
        super().__init__()
        self.ban = ban
        self.extra = {"ban": ban.notice(appeal_url)}
        self.page_text = EVERYWHERE if ban.is_of_all else HERE
        self.page_link = (appeal_url, Text("Appeal against the ban")) if appeal_url else None

    def page_facts(self) -> list[tuple[Text, str]]:
        """Returns what the page lists, in its language."""
        until = format_time(datetime.fromtimestamp(self.ban.until, UTC)) if self.ban.until else Text("It has no end")
        reason = [(Text("Reason"), self.ban.reason)] if self.ban.reason else []
        return [*reason, (Text("End of the ban"), until)]


class LastWayToSignIn(Exception):
    """Without what was to be removed, the user could not sign in any more."""


class SecondFactorNotUsed(ApiError):
    """Every sign-in needs a second factor, and this one was without. Pages ask for one; a program cannot."""

    status = 403
    code = "access_denied"

    def __init__(self, base_url: str) -> None:
        super().__init__(f"a second factor is required: set one up at {base_url}/account and sign in with it")


class AccountClosed(ApiError):
    """The credentials are correct, and the account will be deleted. A user who has requested it can still keep it."""

    status = 403
    code = "access_denied"

    def __init__(self, user: "User", auth: str, *, needs_code: bool) -> None:
        due = f" on {user.deletion_due:%Y-%m-%d}" if user.deletion_due else ""
        how = "sign in with a browser" if user.can_be_kept else "ask support"
        super().__init__(f"this account will be deleted{due}: {how} to keep it")
        self.user = user
        self.auth = auth  # how the user has authenticated
        self.needs_code = needs_code and user.can_be_kept  # the second factor was not checked yet
