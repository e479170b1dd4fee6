"""The default bus: LISTEN and NOTIFY on a connection of its own.

Each worker listens on the channel of all workers and on its own. PostgreSQL wakes every connection that listens, but
passes a notification only to those that listen on its channel. A notification is a transaction of its own: within a
transaction that writes, it would hold a lock of the whole server until that transaction is on disk and on its replicas.

The previous release listens on the channel ``sso`` only and sends there, with the same topics in the same form.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

from sso.bus.transport import EVERYONE, BusUnavailable, Message
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.listener import Listener

CHANNEL = "sso"


class PostgresTransport:
    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._listener: Listener | None = None

    def label(self, topic: str) -> str:
        """The topic itself: everyone who can listen can read the database."""
        return topic

    async def run(self, receive: Callable[[str], None], connected: Callable[[], None]) -> NoReturn:
        self._listener = Listener(self._database.connector, (CHANNEL, channel_of(self._worker)), receive)
        try:
            await self._database.run_on_asyncio(self._listener.run(connected))
        except DatabaseError as error:
            raise BusUnavailable(str(error)) from None
        finally:
            self._listener = None
        raise AssertionError("unreachable")

    async def send(self, messages: Sequence[Message]) -> None:
        if self._listener is None:
            raise BusUnavailable("the bus is not connected")
        notifications = [(channel_of(worker), payload) for worker, payload in messages]
        try:
            await self._database.run_on_asyncio(self._listener.notify(notifications))
        except DatabaseError as error:
            raise BusUnavailable(str(error)) from None


def channel_of(worker: str) -> str:
    return CHANNEL if worker == EVERYONE else f"{CHANNEL}_{worker}"
