"""Why a request about a game session is refused."""

from sso.core.errors import ApiError, Forbidden
from sso.core.language import Text as _


class Violation(Forbidden):
    """Told by the id of a log record, and by nothing else (§4.3)."""


class UnknownSession(Violation):
    """It was never there, or has been forgotten: to a poll the same as any other violation."""


class TooManySessions(ApiError):
    status = 429
    message = "too many new sessions, try again later"

    def __init__(self, retry_after: int) -> None:
        super().__init__()
        self.headers = {"Retry-After": str(retry_after)}


class BadLink(ApiError):
    """A link to a sign-in has a parameter with a wrong value."""

    def __init__(self, name: str) -> None:
        super().__init__(_("The link from the game has a wrong value for “%(name)s”.", name=name))


class NoSession(ApiError):
    """For the person at the browser."""

    status = 410
    message = _("It has expired or was used. Go back to the game and start again.")
