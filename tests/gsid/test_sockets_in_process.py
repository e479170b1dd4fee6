"""WebSockets of a server in the test's own process, so that tests can shorten its limits and make it fail."""

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
from sso.serve.http1 import server as http_server
from sso.serve.server_limits import ServerLimits
from sso.services import Services
from sso.telemetry.metrics import Metrics
from tests.kit.builders import add_user
from tests.kit.held import SOCKET, Game, connect, new_game, receive_all

PING_S = 0.1
HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@dataclass
class InProcessServer:
    base_url: str
    services: Services
    stop: trio.Event
    scope: trio.CancelScope

    async def row(self, game: Game) -> Any:
        (row,) = await self.services.database.run_sql("SELECT * FROM game_sessions WHERE gsid = $1", [game.gsid])
        return row

    async def until_held(self) -> None:
        while not len(self.services.game_login.held_polls):  # noqa: ASYNC110 - there is no event to wait for
            await trio.sleep(0.01)


@pytest.fixture
async def server(services: Services) -> AsyncIterator[InProcessServer]:
    listener = socket.create_server(("127.0.0.1", 0))
    app = build_app(services, Health(), Metrics())
    stop, ready = trio.Event(), trio.Event()
    limits = ServerLimits(ping_s=PING_S, pong_s=PING_S)
    async with trio.open_nursery() as nursery:
        await nursery.start(services.bus.run)
        await nursery.start(services.game_login.held_polls.run)
        await nursery.start(services.game_login.socket_registry.run)
        await services.bus.connected.wait()
        scope = trio.CancelScope()

        async def serve() -> None:
            with scope:
                await http_server.serve(app, [listener], stop, ready.set, limits)

        nursery.start_soon(serve)
        await ready.wait()
        yield InProcessServer(f"http://127.0.0.1:{listener.getsockname()[1]}", services, stop, scope)
        scope.cancel()
        nursery.cancel_scope.cancel()
    listener.close()


@pytest.fixture
async def user(services: Services) -> User:
    return await add_user(services)


async def test_client_that_answers_no_ping_is_disconnected_and_its_poll_cancelled(server: InProcessServer) -> None:
    game = await new_game(server)
    poll = await game.begin_poll()
    await server.until_held()
    async with await connect(server, game.address) as vanished:
        began = trio.current_time()
        await vanished.stream.send_all(HANDSHAKE.format(path=SOCKET + game.gsid).encode())
        assert (await vanished.receive()).status == 101
        with trio.fail_after(60):
            (answer,) = await receive_all([poll])
        assert answer.outcome == "CANCELLED"
        assert trio.current_time() - began > PING_S
    assert (await server.row(game))["status"] == "pending"


async def test_silent_client_that_answers_pings_stays_connected(server: InProcessServer) -> None:
    game = await new_game(server)
    async with await connect(server, game.address) as quiet:
        await quiet.stream.send_all(HANDSHAKE.format(path=SOCKET + game.gsid).encode())
        assert (await quiet.receive()).status == 101
        protocol, answered = WebSocketProtocol(ConnectionType.CLIENT), 0
        with trio.fail_after(60):
            while answered < 4:
                protocol.receive_data(await quiet.receive_some() or None)
                for event in protocol.events():
                    assert not isinstance(event, CloseConnection)
                    if isinstance(event, Ping):
                        await quiet.stream.send_all(protocol.send(event.response()))
                        answered += 1
        assert (await server.row(game))["cancels"] == 0


def test_client_is_disconnected_after_twenty_seconds_without_a_pong() -> None:
    assert ServerLimits().ping_s + ServerLimits().pong_s == 20


async def test_server_error_closes_with_1011_and_cancels_no_poll(
    server: InProcessServer, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = await new_game(server)
    poll = await game.begin_poll()
    await server.until_held()

    async def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    async with game.socket() as opened:
        await opened.event()
        monkeypatch.setattr(server.services.game_login.socket_store, "read", fail)
        await server.services.game_login.confirmation.set_stage(game.gsid, "opened")
        code, last = await opened.closed()
    assert (code, last["status"], last["error"]) == (1011, "ERROR", "server error")
    assert (await server.row(game))["cancels"] == 0
    assert await server.services.game_login.sessions.confirm(game.gsid, user)
    (answer,) = await receive_all([poll])
    assert answer.outcome == "OK"


async def test_failed_attach_closes_with_1011(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    game = await new_game(server)
    errors = [Unavailable("no connection became free"), RuntimeError("a bug")]

    async def fail(*_: object) -> None:
        raise errors.pop()

    monkeypatch.setattr(server.services.game_login.socket_store, "attach", fail)
    while errors:
        async with game.socket() as opened:
            code, last = await opened.closed()
        assert (code, last["error"]) == (1011, "server error")


async def test_socket_survives_a_heartbeat_that_the_database_refuses(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = await new_game(server)
    registry = server.services.game_login.socket_registry

    async def fail(*_: object) -> None:
        raise Unavailable("no connection became free")

    async with game.socket() as opened:
        await opened.event()
        with monkeypatch.context() as broken:
            broken.setattr(server.services.game_login.socket_store, "heartbeat", fail)
            await registry._heartbeat()
        await registry._heartbeat()
        assert (await opened.event())["event"] == "refresh"


async def test_stopped_worker_cancels_no_poll(server: InProcessServer) -> None:
    game = await new_game(server)
    async with game.socket() as opened:
        await opened.event()
        server.scope.cancel()
        await opened.closed()
        row = await server.row(game)
        assert (row["cancels"], row["status"]) == (0, "pending")


async def test_draining_server_closes_with_1012_and_answers_polls_with_retry(server: InProcessServer) -> None:
    game = await new_game(server)
    poll = await game.begin_poll()
    await server.until_held()
    async with game.socket() as opened:
        await opened.event()
        server.stop.set()
        server.services.game_login.drain()
        code, last = await opened.closed(seconds=2)
        (answer,) = await receive_all([poll])
    assert (code, last["status"], last["error"]) == (1012, "ERROR", "server restarting")
    assert answer.outcome == "RETRY"
    assert answer.data["delay"] in (0, 1)
    assert (await server.row(game))["cancels"] == 0
