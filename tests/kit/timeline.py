"""Moments of the permission history, a second or more apart, without waiting between them."""

from dataclasses import dataclass, field

from tests.kit.browser import query
from tests.kit.server import Server

STEP_S = 2
_NOW = "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint"
_SHIFT = f"""WITH moved AS (UPDATE permission_commits SET at = at - make_interval(secs => {STEP_S}))
    UPDATE permission_history SET since = since - make_interval(secs => {STEP_S})"""


@dataclass
class Timeline:
    """Moves the history into the past at each moment. What is written later happens after the moment, however fast."""

    server: Server
    _moments: list[int] = field(default_factory=list)  # when each was, before it was moved into the past

    def mark(self) -> int:
        """Returns the number of this moment: everything that was written until now is visible at it."""
        self._moments.append(self.now())
        query(self.server, _SHIFT)
        return len(self._moments) - 1

    def at(self, moment: int) -> int:
        """The Unix time of a moment. It changes with each mark."""
        return self._moments[moment] - STEP_S * (len(self._moments) - moment)

    def now(self) -> int:
        (row,) = query(self.server, _NOW)
        return int(row[0])
