"""Wake-ups between processes: LISTEN on one connection per process, into Trio memory channels.

A wake-up says "look again", never what there is to see. It may be lost with a connection, so everybody is woken after
a reconnect, and every few seconds in any case: whoever waits only ever waits a little longer.
"""

from contextlib import suppress

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.transaction import Runner

CHANNEL = "sso"
SCAN_S = 5.0
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 2.0

_NOTIFY = Statement("SELECT pg_notify('sso', :topics)")
log = structlog.get_logger()


class Subscription:
    """Both ends of a channel, as long as somebody listens. There may be ten thousand: small, and no generator."""

    __slots__ = ("_in_doubt", "_receive", "_send", "_topic", "_wakeups")

    def __init__(self, wakeups: "Notifications", topic: str, in_doubt: bool) -> None:
        self._wakeups = wakeups
        self._topic = topic
        self._send, self._receive = trio.open_memory_channel[None](1)
        self._in_doubt = in_doubt

    def __enter__(self) -> trio.MemoryReceiveChannel[None]:
        watchers = self._wakeups._watchers
        watchers[self._topic] = (*watchers.get(self._topic, ()), self)
        if self._in_doubt:
            self._wakeups._doubters.add(self)
        return self._receive

    def __exit__(self, *_: object) -> None:
        watchers = self._wakeups._watchers
        others = tuple(watch for watch in watchers[self._topic] if watch is not self)
        if others:
            watchers[self._topic] = others
        else:
            del watchers[self._topic]
        self._wakeups._doubters.discard(self)
        self._send.close()
        self._receive.close()

    def signal(self) -> None:
        with suppress(trio.WouldBlock):  # one is already waiting to be taken
            self._send.send_nowait(None)


class Notifications:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._watchers: dict[str, tuple[Subscription, ...]] = {}
        self._doubters: set[Subscription] = set()
        self.connected = trio.Event()

    def watch(self, topic: str, *, in_doubt: bool = True) -> "Subscription":
        """Signals for a topic; any number of wake-ups that came meanwhile are one.

        Not ``in_doubt``: no signal when a wake-up may have been lost. Somebody else then looks, for many at once.
        """
        return Subscription(self, topic, in_doubt)

    def wake(self, topic: str) -> None:
        """Wake those of this process who watch a topic."""
        for watch in self._watchers.get(topic, ()):
            watch.signal()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._scan)
            task_status.started()
            await self._listen()

    async def _listen(self) -> None:
        delay = FIRST_RETRY_S
        while True:
            try:
                await self._database.listen(CHANNEL, self._deliver, self._on_connect)
            except DatabaseError as error:
                if self.connected.is_set():
                    log.warning("wakeups.lost", reason=str(error))
                    self.connected = trio.Event()
                    delay = FIRST_RETRY_S
            await trio.sleep(delay)
            delay = min(delay * 2, LAST_RETRY_S)

    def _on_connect(self) -> None:
        self.connected.set()
        self.wake_all()

    async def _scan(self) -> None:
        while True:
            await trio.sleep(SCAN_S)
            self.wake_all()

    def _deliver(self, payload: str) -> None:
        for topic in payload.split("\n"):
            self.wake(topic)

    def wake_all(self) -> None:
        for watch in self._doubters:
            watch.signal()


async def notify(runner: Runner, *topics: str) -> None:
    """Wake those who watch these topics, in every process, once the surrounding transaction has committed."""
    await runner.value(_NOTIFY, topics="\n".join(topics))
