"""Polls (RFC 8936): a poll is held until its stream has an event or the hold time is over.

A poll subscribes, reads, and waits, so that no event is missed; no database connection is held while it waits.
"""

from collections import Counter
from collections.abc import Sequence

import structlog
import trio

from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.core.errors import NotFound
from sso.db.errors import DatabaseError
from sso.signals.recording import PUSH_TOPIC, stream_topic
from sso.ssf.delivery_store import SignalDeliveries
from sso.ssf.model import StoredSignal
from sso.ssf.requests import MAX_POLLED, PollRequest, TooManySignalPolls, reported_problem
from sso.telemetry.counters import DELIVERIES

HOLD_S = 30.0
MAX_HELD_PER_CLIENT = 20  # in one worker
NOT_FOUND = "there is no stream with this stream_id that is polled"

log = structlog.get_logger()


class SignalPolls:
    def __init__(self, deliveries: SignalDeliveries, bus: Bus, hold_s: float = HOLD_S) -> None:
        self._deliveries = deliveries
        self._bus = bus
        self._hold_s = hold_s
        self._by_client: Counter[str] = Counter()
        self._held: Counter[str] = Counter()  # by stream
        self._draining = False

    def __len__(self) -> int:
        return self._held.total()

    def drain(self) -> None:
        """Ends all waiting, because the worker stops."""
        self._draining = True
        self._wake(list(self._held))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Regularly, because a message may be lost, looks for events of all streams with a held poll."""
        with self._bus.subscribe(PUSH_TOPIC, Rescans.OFTEN) as signals:
            task_status.started()
            async for _ in signals:
                try:
                    if self._held:
                        self._wake(await self._deliveries.have_events(list(self._held)))
                except DatabaseError as error:
                    log.warning("signals.scan_failed", reason=str(error))

    async def wait(self, client_id: str, stream_id: str, request: PollRequest) -> tuple[list[StoredSignal], bool]:
        """Removes what the receiver has received, and returns the next events and whether there are more.

        Raises NotFound and TooManySignalPolls.
        """
        limit = min(request.max_events, MAX_POLLED)
        received, problem = [*request.ack, *request.set_errs], reported_problem(request.set_errs)
        with self._bus.subscribe(stream_topic(stream_id), Rescans.NEVER) as signals:
            events = await self._read(client_id, stream_id, received, problem, limit)
            DELIVERIES.add("signal", "failed", count=len(request.set_errs))
            if problem:
                log.warning("signals.event_rejected", stream=stream_id, client=client_id, reason=problem)
            if not events and limit and not request.return_immediately:
                events = await self._hold(client_id, stream_id, limit, signals)
        DELIVERIES.add("signal", "delivered", count=min(limit, len(events)))
        return events[:limit], len(events) > limit > 0

    async def _hold(
        self, client_id: str, stream_id: str, limit: int, signals: trio.MemoryReceiveChannel[None]
    ) -> list[StoredSignal]:
        if self._by_client[client_id] >= MAX_HELD_PER_CLIENT:
            raise TooManySignalPolls(1)
        self._by_client[client_id] += 1
        self._held[stream_id] += 1
        events: list[StoredSignal] = []
        deadline = trio.current_time() + self._hold_s
        try:
            while not events and not self._draining and trio.current_time() < deadline:
                with trio.move_on_at(deadline):
                    await signals.receive()
                events = await self._read(client_id, stream_id, (), "", limit)
        finally:
            self._by_client -= Counter([client_id])
            self._held -= Counter([stream_id])
        return events

    async def _read(
        self, client_id: str, stream_id: str, received: Sequence[str], problem: str, limit: int
    ) -> list[StoredSignal]:
        """Returns one event more than the limit if there is one."""
        events = await self._deliveries.poll(client_id, stream_id, received, problem, limit + 1)
        if events is None:
            raise NotFound(NOT_FOUND)
        return events

    def _wake(self, stream_ids: Sequence[str]) -> None:
        for stream_id in stream_ids:
            self._bus.signal(stream_topic(stream_id))
