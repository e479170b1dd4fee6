"""The WebSocket of a scripted service."""

import json
from collections.abc import Sequence

import h11
import trio
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import AcceptConnection, CloseConnection, Ping, TextMessage
from wsproto.handshake import H11Handshake

from sso.cli.play.scripted.script import SocketStep


async def play_socket(stream: trio.SocketStream, request: h11.Request, steps: Sequence[SocketStep]) -> bool:
    """Accepts a WebSocket and plays its steps; then waits until the game closes it. Returns False to reset it."""
    handshake = H11Handshake(ConnectionType.SERVER)
    handshake.initiate_upgrade_connection(list(request.headers), request.target.decode())
    await stream.send_all(handshake.send(AcceptConnection()))
    connection = handshake.connection
    assert connection is not None
    is_kept = True

    async def play() -> None:
        nonlocal is_kept
        for step in steps:
            await trio.sleep(step.wait_s)
            if step.send is not None:
                text = step.send if isinstance(step.send, str) else json.dumps(step.send)
                await stream.send_all(connection.send(TextMessage(data=text)))
            if step.close is not None:
                await stream.send_all(connection.send(CloseConnection(code=step.close)))
                return
            if step.fault == "reset":
                is_kept = False
                nursery.cancel_scope.cancel()
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play)
        await _read_until_closed(stream, connection)
        nursery.cancel_scope.cancel()
    return is_kept


async def _read_until_closed(stream: trio.SocketStream, connection: Connection) -> None:
    """Answers pings and the close of the game."""
    while data := await stream.receive_some():
        connection.receive_data(data)
        for event in connection.events():
            match event:
                case Ping():
                    await stream.send_all(connection.send(event.response()))
                case CloseConnection():
                    if connection.state.name != "CLOSED":
                        await stream.send_all(connection.send(event.response()))
                    return
