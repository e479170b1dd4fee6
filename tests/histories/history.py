"""The history of a run: every call of every client, with its begin, its end and its outcome."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

import httpx


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"  # no answer, 429 or 5xx: the call may have had its effect, or none yet


@dataclass(frozen=True)
class Call:
    """What a client did to a subject, such as the redemption of a code. Times are of one monotonic clock."""

    client: str
    operation: str
    subject: str
    begin: float
    end: float
    outcome: Outcome

    def precedes(self, other: "Call") -> bool:
        """Returns whether this call had ended when the other one began."""
        return self.end < other.begin


class History:
    """Calls of many threads."""

    def __init__(self, calls: Iterable[Call] = ()) -> None:
        self._calls = list(calls)
        self._lock = threading.Lock()

    def record(
        self, operation: str, subject: str, send: Callable[[], httpx.Response], *done: int
    ) -> httpx.Response | None:
        """Sends a request. Returns the answer if it is known; ``done`` are the statuses of success."""
        begin = time.monotonic()
        try:
            answer = send()
        except httpx.HTTPError:
            answer = None
        outcome = _outcome(answer, done or (200,))
        call = Call(threading.current_thread().name, operation, subject, begin, time.monotonic(), outcome)
        with self._lock:
            self._calls.append(call)
        return None if outcome is Outcome.UNKNOWN else answer

    def all_calls(self) -> list[Call]:
        """Returns the calls, ordered by their begin."""
        with self._lock:
            return sorted(self._calls, key=lambda call: call.begin)

    def calls(self, operation: str) -> list[Call]:
        return [call for call in self.all_calls() if call.operation == operation]

    def by_subject(self, operation: str) -> dict[str, list[Call]]:
        found: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self.calls(operation):
            found[call.subject].append(call)
        return found

    def count(self, outcome: Outcome) -> int:
        with self._lock:
            return sum(call.outcome is outcome for call in self._calls)

    def __len__(self) -> int:
        return len(self._calls)


def _outcome(answer: httpx.Response | None, done: tuple[int, ...]) -> Outcome:
    if answer is None or answer.status_code >= 500 or answer.status_code == 429:
        return Outcome.UNKNOWN
    return Outcome.DONE if answer.status_code in done else Outcome.REFUSED
