"""Notifications between processes: LISTEN on one connection per process, passed on through Trio memory channels.

A notification says that something about a topic has changed, never what. It may be lost with the connection, so all
subscribers are signalled after a reconnect, and every few seconds in any case.
"""

from contextlib import suppress

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.transaction import Runner

CHANNEL = "sso"
RESCAN_S = 5.0
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 2.0

_NOTIFY = Statement("SELECT pg_notify('sso', :topics)")
log = structlog.get_logger()


class Subscription:
    """Both ends of a channel, open within its ``with`` block. There may be ten thousand: slots, and no generator."""

    __slots__ = ("_notifications", "_receive", "_rescans", "_send", "_topic")

    def __init__(self, notifications: "Notifications", topic: str, rescans: bool) -> None:
        self._notifications = notifications
        self._topic = topic
        self._send, self._receive = trio.open_memory_channel[None](1)
        self._rescans = rescans

    def __enter__(self) -> trio.MemoryReceiveChannel[None]:
        subscriptions = self._notifications._subscriptions
        subscriptions[self._topic] = (*subscriptions.get(self._topic, ()), self)
        if self._rescans:
            self._notifications._rescanning.add(self)
        return self._receive

    def __exit__(self, *_: object) -> None:
        subscriptions = self._notifications._subscriptions
        others = tuple(other for other in subscriptions[self._topic] if other is not self)
        if others:
            subscriptions[self._topic] = others
        else:
            del subscriptions[self._topic]
        self._notifications._rescanning.discard(self)
        self._send.close()
        self._receive.close()

    def signal(self) -> None:
        with suppress(trio.WouldBlock):  # a signal is pending already
            self._send.send_nowait(None)


class Notifications:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._subscriptions: dict[str, tuple[Subscription, ...]] = {}
        self._rescanning: set[Subscription] = set()
        self.connected = trio.Event()

    def subscribe(self, topic: str, *, rescans: bool = True) -> Subscription:
        """Returns a subscription to a topic. Notifications that arrive while a signal is pending are merged into it.

        Without ``rescans`` it gets no signal when a notification may have been lost: another task then checks for many
        subscribers at once.
        """
        return Subscription(self, topic, rescans)

    def signal(self, topic: str) -> None:
        """Signals the subscribers of a topic in this process."""
        for subscription in self._subscriptions.get(topic, ()):
            subscription.signal()

    def rescan(self) -> None:
        """Signals all subscribers that rescan, because a notification may have been lost."""
        for subscription in self._rescanning:
            subscription.signal()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._rescan_regularly)
            task_status.started()
            await self._listen()

    async def _listen(self) -> None:
        delay = FIRST_RETRY_S
        while True:
            try:
                await self._database.listen(CHANNEL, self._deliver, self._on_connect)
            except DatabaseError as error:
                if self.connected.is_set():
                    log.warning("notifications.connection_lost", reason=str(error))
                    self.connected = trio.Event()
                    delay = FIRST_RETRY_S
            await trio.sleep(delay)
            delay = min(delay * 2, LAST_RETRY_S)

    def _on_connect(self) -> None:
        self.connected.set()
        self.rescan()

    async def _rescan_regularly(self) -> None:
        while True:
            await trio.sleep(RESCAN_S)
            self.rescan()

    def _deliver(self, payload: str) -> None:
        for topic in payload.split("\n"):
            self.signal(topic)


async def notify(runner: Runner, *topics: str) -> None:
    """Notifies the subscribers of the topics in every process, when the surrounding transaction commits."""
    await runner.value(_NOTIFY, topics="\n".join(topics))
