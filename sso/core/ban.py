"""Bans of users: the rule that says whether one applies, and what the player is told.

The same rule is the function ``ban_in_force`` of the database, for statements that issue something. A test compares
the two.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

MAX_REASON = 500  # characters
NEVER = 2**62
BANNED = "the user is banned"
_DESCRIPTION_CHARACTERS = frozenset(map(chr, range(0x20, 0x7F))) - set('"\\')  # of RFC 6749 section 4.1.2.1


class Ban(Struct, frozen=True):
    """Without an application and a project, the ban is of scope "all". It ends at ``until``, in Unix seconds."""

    ban_id: str
    reason: str = ""  # for the player
    until: int | None = None  # None: for ever
    application_id: int | None = None
    project_id: str | None = None

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Ban":
        """Reads an element of ``users.bans``."""
        return cls(**stored)

    @property
    def is_of_all(self) -> bool:
        return self.application_id is None and self.project_id is None

    @property
    def scope(self) -> str | dict[str, Any]:
        """The scope as the interfaces have it."""
        if self.application_id is not None:
            return {"application_id": self.application_id}
        return "all" if self.project_id is None else {"project_id": self.project_id}

    def covers(self, application_ids: Collection[int], project_ids: Collection[str | None]) -> bool:
        if self.application_id is not None:
            return self.application_id in application_ids
        return self.project_id is None or self.project_id in project_ids

    def notice(self, appeal_url: str) -> dict[str, Any]:
        """What a refused call tells the player."""
        return {"reason": self.reason, "until": self.until, "scope": self.scope, "appeal_url": appeal_url or None}

    @property
    def description(self) -> str:
        """The ban as an ``error_description``: one line of the characters that RFC 6749 allows.

        A reason that has mostly other characters, because it is in another script, is left out.
        """
        until = f" until {datetime.fromtimestamp(self.until, UTC):%Y-%m-%d %H:%M} UTC" if self.until else ""
        reason = "".join(item if item in _DESCRIPTION_CHARACTERS else "?" for item in self.reason.replace('"', "'"))
        is_readable = reason and 2 * reason.count("?") <= len(reason)
        return f"{BANNED}{until}" + (f": {reason}" if is_readable else "")


def read_bans(stored: Iterable[dict[str, Any]] | None) -> tuple[Ban, ...]:
    """Returns the bans in ``users.bans``, which is NULL for most users."""
    return tuple(map(Ban.from_json, stored)) if stored else ()


def ban_in_force(
    bans: Iterable[Ban], now: float, application_ids: Collection[int] = (), project_ids: Collection[str | None] = ()
) -> Ban | None:
    """Returns the ban that lasts longest among those that apply to one of the applications or projects, or to all."""
    applying = [
        ban for ban in bans if (ban.until is None or ban.until > now) and ban.covers(application_ids, project_ids)
    ]
    return max(applying, key=lambda ban: NEVER if ban.until is None else ban.until, default=None)
