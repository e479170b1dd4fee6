"""Signing of events: clients take turns."""

import threading
from collections import Counter
from datetime import UTC, datetime
from typing import Any, cast

import trio
import trio.testing

from sso.keys.keyset import KeySet
from sso.signals.event_types import SignalType
from sso.ssf.event_tokens import INLINE, MAX_WAITING, EventTokens
from sso.ssf.model import StoredSignal
from sso.ssf.requests import TooManySignalPolls
from tests.kit.conditions import until_true


class SlowKeys:
    """Signs nothing until ``ready`` is set, and remembers the clients of the tokens."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.clients: list[str] = []

    def signer(self, _: str) -> "SlowKeys":
        return self

    def sign(self, claims: dict[str, Any], _: str) -> str:
        self.clients.append(claims["aud"])
        self.ready.wait()
        return "token"


def page(client_id: str) -> list[StoredSignal]:
    """Returns as many events as are signed in a thread."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    data: dict[str, Any] = {}
    values = (moment, SignalType.ACCOUNT_PURGED, "1001", None, None, data, "txn", "stream", client_id, "RS256")
    return [StoredSignal(number, f"jti-{number}", *values) for number in range(INLINE + 1)]


async def test_client_that_polls_all_the_time_does_not_delay_the_events_of_others() -> None:
    keys = SlowKeys()
    tokens = EventTokens(cast(KeySet, keys), "https://sso.example.com")
    results: Counter[tuple[str, str]] = Counter()

    async def sign(client_id: str) -> None:
        try:
            signed = await tokens.sign(page(client_id))
        except TooManySignalPolls:
            results[client_id, "refused"] += 1
        else:
            results[client_id, "signed"] += len(signed) > 0

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sign, "greedy")
        await until_true(lambda: bool(keys.clients))
        for _ in range(MAX_WAITING + 5):
            nursery.start_soon(sign, "greedy")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(sign, "other")
        await trio.testing.wait_all_tasks_blocked()
        keys.ready.set()
    assert results == {("greedy", "signed"): MAX_WAITING, ("greedy", "refused"): 6, ("other", "signed"): 1}
    assert keys.clients.index("other") <= 2 * (INLINE + 1)  # after one page that was being signed, and one that waited
