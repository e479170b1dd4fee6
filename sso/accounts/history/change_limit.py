"""Limits the changes that a user can make again and again, each with a mail, a signal or an entry of the history."""

from typing import TYPE_CHECKING

from sso.core.errors import RetryLater
from sso.db.rate_limit import WindowLimiter

if TYPE_CHECKING:
    from sso.core.language import Text

MAX_CHANGES, WINDOW_S = 60, 3600  # of one kind, for one user
CHANGES = WindowLimiter("account change", MAX_CHANGES, WINDOW_S)


class TooManyChanges(RetryLater):
    """The user has made more changes of one kind within an hour than a person makes."""

    status = 429
    message = "too many changes of this kind, try again later"

    @property
    def page_text(self) -> "Text":
        from sso.core.language import plural  # Jinja, which commands that only read do not need

        return plural(
            "Too many attempts. Please wait a second and try again.",
            "Too many attempts. Please wait %(count)s seconds and try again.",
            self.retry_after,
        )
