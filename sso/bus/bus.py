"""Wake-ups between workers. A worker publishes topics after a commit; their subscribers in all workers look again.

A message says that something about a topic has changed, never what. It may be lost, so subscribers are also signalled
when the connection is lost, when it is back, and regularly: every few seconds, or every half minute if the subscriber
allows it and the bus is connected.
"""

from collections.abc import Callable

import structlog
import trio

from sso.bus.outgoing import Outgoing
from sso.bus.subscriptions import CallbackSubscription, Rescans, Subscription, Subscriptions
from sso.bus.transport import EVERYONE, BusUnavailable, Transport
from sso.core.ids import record_id

RESCAN_S = 5.0
RARE_RESCAN_S = 30.0
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 2.0
FLUSH_S = 3.0

log = structlog.get_logger()


def worker_name() -> str:
    """Returns a name for this process, which other workers can send messages to."""
    return record_id()


class Bus:
    def __init__(self, transport: Transport, worker: str) -> None:
        self._transport = transport
        self._subscriptions = Subscriptions()
        self._outgoing = Outgoing()
        self._has_outgoing = trio.Event()
        self._all_sent = trio.Event()
        self._all_sent.set()
        self._is_overfull = False
        self.worker = worker
        self.connected = trio.Event()
        self.failure = ""  # why it is not connected
        self.sent = self.received = self.dropped = 0  # messages sent and received, topics dropped

    def subscribe(self, topic: str, rescans: Rescans = Rescans.OFTEN) -> Subscription:
        """Returns a subscription to a topic. Messages that arrive while a signal is pending are merged into it."""
        return Subscription(self._subscriptions, self._transport.label(topic), rescans)

    def watch(self, topic: str, rescans: Rescans, signal: Callable[[], None]) -> CallbackSubscription:
        """Like `subscribe`, but calls ``signal``."""
        return CallbackSubscription(self._subscriptions, self._transport.label(topic), rescans, signal)

    def publish(self, topic: str, worker: str = EVERYONE) -> None:
        """Signals the subscribers of a topic, in one worker or in all of them. To be called after the commit.

        Subscribers in this process are signalled at once. A message to others shares its way with those that wait.
        """
        label = self._transport.label(topic)
        if worker in (self.worker, EVERYONE):
            self._subscriptions.signal(label)
        if worker != self.worker:
            self._add_outgoing(worker, label)

    @property
    def waiting(self) -> int:
        """The number of topics that have not been sent yet."""
        return len(self._outgoing)

    def signal(self, topic: str) -> None:
        """Signals the subscribers of a topic in this process."""
        self._subscriptions.signal(self._transport.label(topic))

    def rescan(self) -> None:
        """Signals all subscribers that rescan, because a message may have been lost."""
        self._subscriptions.rescan(Rescans.OFTEN, Rescans.RARELY)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._rescan_regularly)
                nursery.start_soon(self._send_outgoing)
                task_status.started()
                await self._stay_connected()
        finally:
            self.connected = trio.Event()

    async def wait_until_sent(self) -> None:
        """Returns when all topics that were published have been sent, or after a few seconds."""
        with trio.move_on_after(FLUSH_S):
            await self._all_sent.wait()

    async def send_once(self) -> None:
        """Connects, sends what was published, and disconnects: for commands, which do not keep a connection.

        Gives up after a few seconds; the workers then notice the change when they rescan.
        """
        if not self._outgoing:
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_outgoing)
            nursery.start_soon(self._stay_connected)
            await self.wait_until_sent()
            nursery.cancel_scope.cancel()

    def _add_outgoing(self, worker: str, label: str) -> None:
        if self._outgoing.add(worker, label):
            if self._all_sent.is_set():
                self._all_sent = trio.Event()
            self._has_outgoing.set()
            return
        self.dropped += 1
        if not self._is_overfull:
            log.warning("bus.topics_dropped", waiting=len(self._outgoing))
        self._is_overfull = True

    async def _send_outgoing(self) -> None:
        while True:
            await self._has_outgoing.wait()
            await self.connected.wait()
            messages = self._outgoing.take()
            if not messages:
                self._has_outgoing = trio.Event()
                self._all_sent.set()
                continue
            try:
                await self._transport.send(messages)
            except BusUnavailable:  # logged by _stay_connected
                self._outgoing.put_back(messages)
                await trio.sleep(FIRST_RETRY_S)
            else:
                self.sent += len(messages)
                self._is_overfull = False

    async def _stay_connected(self) -> None:
        delay, logged = FIRST_RETRY_S, False
        while True:
            try:
                await self._transport.run(self._receive, self._on_connect)
            except BusUnavailable as error:
                self.failure = str(error)
                if self.connected.is_set():
                    delay, logged = FIRST_RETRY_S, False
                    self.connected = trio.Event()
                    self.rescan()
                if not logged:
                    log.warning("bus.connection_lost", reason=str(error))
                    logged = True
            await trio.sleep(delay)
            delay = min(delay * 2, LAST_RETRY_S)

    def _on_connect(self) -> None:
        log.info("bus.connected", worker=self.worker)
        self.connected.set()
        self.failure = ""
        self.rescan()

    async def _rescan_regularly(self) -> None:
        due = trio.current_time() + RARE_RESCAN_S
        while True:
            await trio.sleep(RESCAN_S)
            now = trio.current_time()
            if now >= due or not self.connected.is_set():
                due = now + RARE_RESCAN_S
                self.rescan()
            else:
                self._subscriptions.rescan(Rescans.OFTEN)

    def _receive(self, payload: str) -> None:
        self.received += 1
        for label in payload.split("\n"):
            self._subscriptions.signal(label)
