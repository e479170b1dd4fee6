"""Errors of requests about a game session."""

from sso.core.errors import ApiError, Forbidden, RetryLater
from sso.core.language import Text as _


class Violation(Forbidden):
    """A security violation. The client learns only the id of the log record (§4.3); in the demo, also the reason."""

    def __init__(self, record: str, explanation: str = "") -> None:
        super().__init__(record)
        self.explanation = explanation
        if explanation:
            self.extra["reason"] = explanation


class UnknownSession(Violation):
    """The session never existed or has been deleted. A poll reports it like any other violation."""


class TooManySessions(RetryLater):
    status = 429
    message = "too many new sessions, try again later"


class BadLink(ApiError):
    """A link to a game login has an invalid parameter."""

    def __init__(self, name: str) -> None:
        super().__init__(_("The link from the game has an invalid value for “%(name)s”.", name=name))


class NoSession(ApiError):
    """The session does not exist or has ended; shown to the user in the browser."""

    status = 410
    message = _("The link has expired or was already used. Go back to the game and start again.")
