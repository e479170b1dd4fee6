"""A server inside the test, whose clock and errors are ours: clients that vanish, and a server that fails."""

import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from wsproto.connection import Connection as WebSocketProtocol
from wsproto.connection import ConnectionType
from wsproto.events import CloseConnection, Ping

from sso.accounts.model import User
from sso.app import build_app
from sso.db.errors import Unavailable
from sso.health import Health
from sso.metrics import Metrics
from sso.serve import hypercorn_connection
from sso.serve.http1 import server as http_server
from sso.services import Services
from tests.kit.builders import add_user
from tests.kit.held import SOCKET, Game, connect, new_game, receive_all

PING_S = 0.1
HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@dataclass
class Inside:
    base_url: str
    services: Services
    stop: trio.Event
    scope: trio.CancelScope

    async def row(self, game: Game) -> Any:
        (row,) = await self.services.database.run_sql("SELECT * FROM game_sessions WHERE gsid = $1", [game.gsid])
        return row

    async def until_polled(self, game: Game) -> None:
        while not (await self.row(game))["poll"]:  # noqa: ASYNC110 - the database has no events for us
            await trio.sleep(0.01)
        await trio.sleep(0.05)


@pytest.fixture
async def server(services: Services, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Inside]:
    monkeypatch.setattr(hypercorn_connection, "PING_S", PING_S)
    listener = socket.create_server(("127.0.0.1", 0))
    app = build_app(services, Health(), Metrics(enabled=False))
    stop, ready = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(services.notifications.run)
        await nursery.start(services.game.held_polls.run)
        await nursery.start(services.game.socket_registry.run)
        await services.notifications.connected.wait()
        scope = trio.CancelScope()

        async def serve() -> None:
            with scope:
                await http_server.serve(app, [listener], stop, ready.set, hypercorn_only=True)

        nursery.start_soon(serve)
        await ready.wait()
        yield Inside(f"http://127.0.0.1:{listener.getsockname()[1]}", services, stop, scope)
        scope.cancel()
        nursery.cancel_scope.cancel()
    listener.close()


@pytest.fixture
async def user(services: Services) -> User:
    return await add_user(services)


async def test_a_client_that_answers_no_ping_is_gone_and_cancels_its_poll(server: Inside) -> None:
    game = await new_game(server)
    async with await connect(server, game.address) as vanished:
        await vanished.stream.send_all(HANDSHAKE.format(path=SOCKET + game.gsid).encode())
        assert (await vanished.receive()).status == 101
        poll = await game.begin_poll()
        await server.until_polled(game)
        began = trio.current_time()
        with trio.fail_after(10):
            (answer,) = await receive_all([poll])
        assert answer.told == "CANCELLED"
        assert trio.current_time() - began > PING_S
    assert (await server.row(game))["status"] == "pending"


async def test_a_client_that_says_nothing_but_answers_pings_stays(server: Inside) -> None:
    game = await new_game(server)
    async with await connect(server, game.address) as quiet:
        await quiet.stream.send_all(HANDSHAKE.format(path=SOCKET + game.gsid).encode())
        assert (await quiet.receive()).status == 101
        protocol, answered = WebSocketProtocol(ConnectionType.CLIENT), 0
        with trio.fail_after(30):
            while answered < 2 * (hypercorn_connection.MAX_PINGS + 1):
                protocol.receive_data(await quiet.receive_some() or None)
                for event in protocol.events():
                    assert not isinstance(event, CloseConnection)
                    if isinstance(event, Ping):
                        await quiet.stream.send_all(protocol.send(event.response()))
                        answered += 1
        assert (await server.row(game))["cancels"] == 0


async def test_after_twenty_seconds_without_a_pong_a_client_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert hypercorn_connection.PING_S * (hypercorn_connection.MAX_PINGS + 1) == 20


async def test_an_error_of_ours_is_1011_and_cancels_nothing(
    server: Inside, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = await new_game(server)
    poll = await game.begin_poll()
    await server.until_polled(game)

    async def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    async with game.socket() as opened:
        await opened.event()
        monkeypatch.setattr(server.services.game.socket_store, "read", fail)
        await server.services.game.confirmation.set_stage(game.gsid, "opened")
        code, last = await opened.closed()
    assert (code, last["status"], last["error"]) == (1011, "ERROR", "server error")
    assert (await server.row(game))["cancels"] == 0
    assert await server.services.game.sessions.confirm(game.gsid, user)
    (answer,) = await receive_all([poll])
    assert answer.told == "OK"


@pytest.mark.parametrize("error", [Unavailable("no connection became free"), RuntimeError("a mistake")], ids=repr)
async def test_a_socket_that_cannot_be_looked_up_is_1011(
    server: Inside, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    game = await new_game(server)

    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(server.services.game.socket_store, "attach", fail)
    async with game.socket() as opened:
        code, last = await opened.closed()
    assert (code, last["error"]) == (1011, "server error")


async def test_a_beat_that_the_database_refuses_is_left_out_and_the_socket_stays(
    server: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = await new_game(server)
    heartbeats = server.services.game.socket_registry

    async def fail(*_: object) -> None:
        raise Unavailable("no connection became free")

    async with game.socket() as opened:
        await opened.event()
        with monkeypatch.context() as broken:
            broken.setattr(server.services.game.socket_store, "heartbeat", fail)
            await heartbeats._heartbeat()
        await heartbeats._heartbeat()
        assert (await opened.event())["event"] == "refresh"


async def test_the_heartbeat_tells_a_replaced_socket_of_the_same_worker_that_it_is(server: Inside) -> None:
    """When the wake-up was lost."""
    game = await new_game(server)
    store = server.services.game.socket_store
    for name in ("older", "newer"):
        assert await store.attach(game.gsid, name)
    seen = await store.heartbeat([(game.gsid, "older"), (game.gsid, "newer")])
    assert {name: found.socket_id for name, found in seen.items()} == {"older": "newer", "newer": "newer"}


async def test_a_worker_that_goes_down_cancels_nobodys_poll(server: Inside) -> None:
    game = await new_game(server)
    async with game.socket() as opened:
        await opened.event()
        server.scope.cancel()
        await trio.sleep(0.3)
        row = await server.row(game)
        assert (row["cancels"], row["status"]) == (0, "pending")


async def test_a_server_that_leaves_says_1012_and_answers_retry_at_once(server: Inside) -> None:
    game = await new_game(server)
    poll = await game.begin_poll()
    await server.until_polled(game)
    async with game.socket() as opened:
        await opened.event()
        server.stop.set()
        server.services.game.drain()
        code, last = await opened.closed(seconds=2)
        (answer,) = await receive_all([poll])
    assert (code, last["status"], last["error"]) == (1012, "ERROR", "server restarting")
    assert answer.told == "RETRY"
    assert answer.data["delay"] in (0, 1)
    assert (await server.row(game))["cancels"] == 0
