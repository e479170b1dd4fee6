"""LISTEN on a connection of its own, on the asyncio side."""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from sso.db.connector import Connector
from sso.db.driver_errors import DRIVER_ERRORS, raise_translated
from sso.db.errors import Unavailable

PROBE_EVERY_S = 10.0  # a connection whose peer is gone without a FIN looks alive until it is used
PROBE_S = 3.0


async def listen(
    connector: Connector, channel: str, deliver: Callable[[str], None], connected: Callable[[], None]
) -> NoReturn:
    """Calls ``connected`` once it listens, and ``deliver`` for each notification. Raises Unavailable when the
    connection is lost, or closed because another host has become the primary."""
    connection = None
    try:
        connection = await connector.connect()
        lost = asyncio.get_running_loop().create_future()
        connection.add_termination_listener(lambda _: lost.cancel())
        await connection.add_listener(channel, lambda _connection, _pid, _channel, payload: deliver(payload))
        connected()
        while True:
            await asyncio.wait([lost], timeout=PROBE_EVERY_S)
            if lost.cancelled():
                raise Unavailable("the listening connection was lost")
            await connection.fetchval("SELECT 1", timeout=PROBE_S)
    except DRIVER_ERRORS as error:
        raise_translated(error)
    finally:
        if connection is not None and not connection.is_closed():
            connection.terminate()
