"""What the clients of a history share: the same request at both nodes at once, recorded."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx

from tests.histories.world import World

Send = Callable[[], httpx.Response]
UNDECIDED = httpx.Response(503)  # nothing is known: the request has no effect yet, and may be repeated


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def race(world: World, operation: str, subject: str, sends: Sequence[Send], done: int = 200) -> httpx.Response | None:
    """Sends all requests at once. Returns the answer of the one that succeeded."""
    answers = at_once(*(partial(world.history.record, operation, subject, send, done) for send in sends))
    won = [answer for answer in answers if answer is not None and answer.status_code == done]
    return won[0] if won else None
