"""Counts the steps of logins by games, by application and store, for the admin console.

Counting is an addition in a dictionary of this process; ``sso/db/figures.py`` adds the counts to the database from
time to time. The store is a text that a game sends, so the number of stores is limited.
"""

from collections.abc import Iterable

STEPS = ("registered", "opened", "signed_in", "confirmed", "delivered", "closed")
MAX_STORES = 200  # for all applications together between two writes, and for each application in a day
MAX_STORE_LENGTH = 40
OTHER_STORES = "(other)"

FunnelCounts = dict[tuple[int, str], list[int]]  # application id (0: none) and store → the counts of STEPS


class LoginFunnel:
    def __init__(self) -> None:
        self._counts: FunnelCounts = {}

    def add(self, step: str, application_ids: Iterable[int], store: str) -> None:
        """Counts a step of a login to the last application, which is the game if a studio's application precedes it."""
        key = (next(reversed((0, *application_ids))), store[:MAX_STORE_LENGTH])
        if key not in self._counts and len(self._counts) >= MAX_STORES:
            key = (key[0], OTHER_STORES)
        self._counts.setdefault(key, [0] * len(STEPS))[STEPS.index(step)] += 1

    def take(self) -> FunnelCounts:
        """Returns the counts since the last call."""
        counts, self._counts = self._counts, {}
        return counts


LOGIN_FUNNEL = LoginFunnel()
