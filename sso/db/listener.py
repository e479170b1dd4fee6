"""LISTEN and NOTIFY on a connection of its own, on the asyncio side."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from sso.db.connector import Connector
from sso.db.driver_errors import DRIVER_ERRORS, raise_translated
from sso.db.errors import Unavailable

PROBE_EVERY_S = 2.0  # a connection whose peer is gone without a FIN looks alive until it is used
PROBE_S = 3.0
NOTIFY_S = 2.0

_NOTIFY = "SELECT count(pg_notify(channel, payload)) FROM unnest($1::text[], $2::text[]) AS item (channel, payload)"
# The name shows in pg_stat_activity. Notifications may be lost anyway, so they need not wait for the disk.
_SET_UP = "SET application_name = 'sso bus'; SET synchronous_commit = off"


class Listener:
    def __init__(self, connector: Connector, channels: Iterable[str], deliver: Callable[[str], None]) -> None:
        self._connector = connector
        self._channels = tuple(channels)
        self._deliver = deliver
        self._connection: Any = None
        self._in_use = asyncio.Lock()

    async def run(self, connected: Callable[[], None]) -> NoReturn:
        """Calls ``connected`` once it listens.

        Raises Unavailable when the connection is lost, or closed because another host has become the primary.
        """
        connection = None
        try:
            connection = await self._connector.connect()
            lost = asyncio.get_running_loop().create_future()
            connection.add_termination_listener(lambda _: lost.cancel())
            for channel in self._channels:
                await connection.add_listener(channel, self._receive)
            await connection.execute(_SET_UP)
            self._connection = connection
            connected()
            while True:
                await asyncio.wait([lost], timeout=PROBE_EVERY_S)
                if lost.cancelled():
                    raise Unavailable("the listening connection was lost")
                async with self._in_use:
                    await connection.fetchval("SELECT 1", timeout=PROBE_S)
        except DRIVER_ERRORS as error:
            raise_translated(error)
        finally:
            self._connection = None
            if connection is not None and not connection.is_closed():
                connection.terminate()

    async def notify(self, notifications: Sequence[tuple[str, str]]) -> None:
        """Sends notifications, each a channel and a payload, in one transaction.

        Raises Unavailable if they may not have been sent; the connection is then closed.
        """
        connection = self._connection
        if connection is None:
            raise Unavailable("not connected")
        channels, payloads = [channel for channel, _ in notifications], [payload for _, payload in notifications]
        try:
            async with self._in_use:
                await connection.fetchval(_NOTIFY, channels, payloads, timeout=NOTIFY_S)
        except DRIVER_ERRORS as error:
            connection.terminate()
            raise_translated(error)

    def _receive(self, connection: Any, sender: int, _channel: str, payload: object) -> None:
        if sender != connection.get_server_pid():  # this process has signalled its own subscribers already
            self._deliver(str(payload))
