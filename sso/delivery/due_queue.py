"""Delivers what is due: claims an item with a lease, tries it, and retries it after growing pauses until it has failed.

All workers run every queue. One statement claims an item until the lease ends, so one worker at a time delivers it, and
another one continues if that worker was killed. Attempts that were interrupted count as attempts.
"""

import logging
import math
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import structlog
import trio
from msgspec import Struct, field

from sso.bus.bus import Bus
from sso.core.encryption import EncryptionError
from sso.db.errors import DatabaseError
from sso.db.transaction import Row
from sso.telemetry.counters import DELIVERIES

LEASE_S = 60.0  # longer than an attempt may take, except for a mail, which renews its lease
RELEASE_S = 2.0
DATABASE_PAUSE_S = 5.0  # after an item that could not be read, or whose result could not be stored

Item = TypeVar("Item")
log = structlog.get_logger()


class RetryPolicy(Struct, frozen=True):
    first_pause_s: float
    factor: float
    max_pause_s: float = math.inf
    jitter: float = 0.0  # pauses vary by this part, so that retries do not all come at once
    max_tries: float = math.inf

    def pause_s(self, tries: int) -> float:
        """Returns the pause after so many failures in a row."""
        pause_s = min(self.max_pause_s, self.first_pause_s * self.factor ** min(tries - 1, 20))
        return pause_s * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - not a secret


class Due(Struct, Generic[Item], frozen=True):
    """A claimed item."""

    item: Item
    receiver: str
    tries: int  # including the one that begins now
    log_fields: Mapping[str, Any]


class Failure(Struct, frozen=True):
    reason: str
    can_be_retried: bool = True
    tries: int | None = None  # None: the attempts of the claimed item
    log_fields: Mapping[str, Any] = field(default_factory=dict)


class QueuedDelivery(ABC, Generic[Item]):
    """One kind of items: how they are claimed, sent and stored. The queue decides about retries."""

    name: str  # in the log and the metrics
    retries: RetryPolicy
    max_per_receiver: float = math.inf  # so that a receiver that does not answer does not hold up the others

    @abstractmethod
    async def claim(self, busy: list[str]) -> Due[Item] | None:
        """Returns an item that is due and not for a busy receiver; None if there is none."""

    @abstractmethod
    async def send(self, item: Item) -> Failure | None:
        """Returns None if the item was accepted. Every error is a failure, except errors of the database."""

    @abstractmethod
    async def finish(self, due: Due[Item]) -> None:
        """Stores that the item was accepted."""

    @abstractmethod
    async def store_failure(self, item: Item, failure: Failure, retry_after_s: float | None) -> None:
        """Stores when the item is due again. Without a pause it has failed for good."""

    async def release(self, item: Item) -> None:
        """Gives a lease back that is still held, also if this worker stops."""


class DueQueue:
    def __init__(self, topic: str, *deliveries: QueuedDelivery[Any], max_deliveries: int, merge_s: float = 0.0) -> None:
        self._topic = topic
        self._deliveries = deliveries
        self._max_deliveries = max_deliveries
        self._merge_s = merge_s  # what becomes due within this time is claimed together
        self._in_flight: Counter[tuple[QueuedDelivery[Any], str]] = Counter()  # by receiver
        self._wake_up = trio.Event()

    @property
    def in_flight(self) -> int:
        return self._in_flight.total()

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self._listen, bus)
            task_status.started()
            while True:
                self._wake_up = trio.Event()
                try:
                    for delivery in self._deliveries:
                        await self._start_due(nursery, delivery)
                except (DatabaseError, EncryptionError) as error:
                    log.warning("queue.claim_failed", reason=str(error))
                await self._wake_up.wait()
                await trio.sleep(self._merge_s)

    async def _listen(self, bus: Bus, *, task_status: trio.TaskStatus[None]) -> None:
        with bus.subscribe(self._topic) as signals:
            task_status.started()
            async for _ in signals:
                self._wake_up.set()

    async def _start_due(self, nursery: trio.Nursery, delivery: QueuedDelivery[Any]) -> None:
        while self.in_flight < self._max_deliveries:
            due = await delivery.claim(self._busy_receivers(delivery))
            if due is None:
                return
            self._in_flight[delivery, due.receiver] += 1
            nursery.start_soon(self._deliver, delivery, due)

    def _busy_receivers(self, delivery: QueuedDelivery[Any]) -> list[str]:
        return [
            receiver
            for (other, receiver), count in self._in_flight.items()
            if other is delivery and count >= delivery.max_per_receiver
        ]

    async def _deliver(self, delivery: QueuedDelivery[Item], due: Due[Item]) -> None:
        try:
            failure = await self._try(delivery, due)
            if failure is None:
                await delivery.finish(due)
            else:
                await self._record_failure(delivery, due, failure)
        except DatabaseError as error:  # another attempt follows when the lease is over, or given back
            log.warning("queue.store_failed", queue=delivery.name, reason=str(error))
            await trio.sleep(DATABASE_PAUSE_S)
        finally:
            self._in_flight[delivery, due.receiver] -= 1
            self._in_flight += Counter()  # removes the receivers without deliveries
            with trio.move_on_after(RELEASE_S, shield=True):
                await self._release(delivery, due)
            self._wake_up.set()

    async def _try(self, delivery: QueuedDelivery[Item], due: Due[Item]) -> Failure | None:
        if due.tries > delivery.retries.max_tries:
            return Failure("the last attempt was interrupted", can_be_retried=False)
        try:
            return await delivery.send(due.item)
        except DatabaseError:  # the receiver is not to blame, and something may have been stored
            raise
        except Exception as error:  # one item must not stop the others
            return Failure(_reason(error))

    async def _record_failure(self, delivery: QueuedDelivery[Item], due: Due[Item], failure: Failure) -> None:
        tries = failure.tries or due.tries
        is_retried = failure.can_be_retried and tries < delivery.retries.max_tries
        retry_after_s = delivery.retries.pause_s(tries) if is_retried else None
        DELIVERIES.add(delivery.name, "retry" if is_retried else "failed")
        log.log(
            logging.WARNING if is_retried else logging.ERROR,
            "queue.delivery_failed",
            queue=delivery.name,
            tries=tries,
            reason=failure.reason,
            retry_after_s=retry_after_s,
            **due.log_fields,
            **failure.log_fields,
        )
        await delivery.store_failure(due.item, failure, retry_after_s)

    async def _release(self, delivery: QueuedDelivery[Item], due: Due[Item]) -> None:
        try:
            await delivery.release(due.item)
        except DatabaseError as error:
            log.warning("queue.store_failed", queue=delivery.name, reason=str(error))


def origin_fields(row: Row) -> dict[str, str]:
    """Returns the log fields of the request that queued an item. Commands and background tasks have none."""
    origin = {"request": row["request_id"], "trace": row["trace_id"]}
    return {name: value for name, value in origin.items() if value}


def _reason(error: Exception) -> str:
    """Returns the error's type and, for TLS, why the certificate was rejected. Other texts may quote the message."""
    return (
        f"{type(error).__name__}: {error.verify_message}" if hasattr(error, "verify_message") else type(error).__name__
    )
