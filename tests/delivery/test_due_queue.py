"""The queue while the database does not answer."""

from typing import cast

import trio
import trio.testing
from structlog.testing import capture_logs

from sso.bus.bus import Bus
from sso.db.errors import DeadlineExceeded
from sso.delivery.due_queue import DATABASE_PAUSE_S, Due, DueQueue, Failure, QueuedDelivery, RetryPolicy


class SilentBus:
    """Wakes nobody up."""

    def __init__(self) -> None:
        self._signals, self._subscription = trio.open_memory_channel[None](0)

    def subscribe(self, _topic: str) -> trio.MemoryReceiveChannel[None]:
        return self._subscription


class UnreadableDelivery(QueuedDelivery[str]):
    """One item, which cannot be read. It is due whenever no attempt has a lease."""

    name = "unreadable"
    retries = RetryPolicy(first_pause_s=60.0, factor=1.0)

    def __init__(self) -> None:
        self._is_due = True
        self.attempts = 0

    async def claim(self, busy: list[str]) -> Due[str] | None:
        if not self._is_due:
            return None
        self._is_due = False
        self.attempts += 1
        return Due("item", "receiver", self.attempts, {})

    async def send(self, item: str) -> Failure | None:
        raise DeadlineExceeded("no answer")

    async def finish(self, due: Due[str]) -> None:
        raise AssertionError("never accepted")

    async def store_failure(self, item: str, failure: Failure, retry_after_s: float | None) -> None:
        raise AssertionError("the receiver is not to blame")

    async def release(self, item: str) -> None:
        self._is_due = True


async def test_item_that_cannot_be_read_is_tried_after_a_pause(autojump_clock: trio.testing.MockClock) -> None:
    delivery = UnreadableDelivery()
    queue = DueQueue("topic", delivery, max_deliveries=32, merge_s=0.02)
    with trio.move_on_after(10 * DATABASE_PAUSE_S), capture_logs():
        await queue.run(cast(Bus, SilentBus()))
    assert 9 <= delivery.attempts <= 10
