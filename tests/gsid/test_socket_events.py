"""The WebSocket of a game session over the network: heartbeats, stages, and closing by either side (§6)."""

from functools import partial
from typing import Any

import pytest
import trio

from tests.kit.browser import AuthenticatorApp, Browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.held import (
    Player,
    Rows,
    Socket,
    new_game,
    receive_all,
)
from tests.kit.server import Server
from tests.kit.timing import SLACK

CANCELLED_S = 1.0


@pytest.fixture(scope="module")
def server(quick_sockets: Server) -> Server:
    return quick_sockets


# Heartbeats and stages


async def test_last_seen_follows_the_heartbeat_and_is_0_without_a_socket(server: Server) -> None:
    game, other = await new_game(server), await new_game(server)
    assert (await game.info())["last_seen"] == (await other.info())["last_seen"] == 0
    async with game.socket() as socket:
        first = await socket.event()
        second = await socket.event()
        third = await socket.event()
        moves = [after["last_seen"] - before["last_seen"] for before, after in ((first, second), (second, third))]
        assert all(0 <= move <= 5 for move in moves)
        assert third["last_seen"] > first["last_seen"]
        assert abs((await game.info())["last_seen"] - third["last_seen"]) <= 1
    last_seen = (await game.info())["last_seen"]
    async with other.socket() as socket:
        for _ in range(2):  # heartbeats of the other socket, and then the first one must not have been counted
            await socket.next("refresh")
    assert (await game.info())["last_seen"] == last_seen


async def test_poll_result_has_last_seen_of_the_socket(server: Server, rows: Rows) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        seen = (await socket.event())["last_seen"]
        poll = await game.begin_poll()
        await rows.until_polled(game.gsid)
        async with await game.begin_poll():  # the older poll gets RETRY
            (answer,) = await receive_all([poll])
    assert answer.outcome == "RETRY"
    assert 0 <= answer.data["last_seen"] - seen <= 2


async def test_stages_of_a_login_are_sent_in_order(server: Server) -> None:
    login = await in_thread(new_user, server, totp_secret=TOTP_SECRET)
    game = await new_game(server)
    poll = await game.begin_poll()
    with Browser(server) as browser:
        async with game.socket() as socket:
            await in_thread(browser.get, f"/?gsid={game.gsid}")
            assert await socket.stage() == "opened"
            await in_thread(browser.get, f"/?gsid={game.gsid}")
            answer = await in_thread(browser.submit, "/login", login=login, password="not the right one")
            assert answer.status_code == 401
            assert await socket.stage() == "signing_in"
            answer = await in_thread(browser.submit, "/login", login=login, password=PASSWORD)
            assert await socket.stage() == "second_factor"
            await in_thread(browser.follow, answer)
            await in_thread(browser.submit, "/login/code", otp=AuthenticatorApp(TOTP_SECRET).code())
            assert await socket.stage() == "confirmed"
            code, last = await socket.closed()
    assert (code, last["status"], last["error"]) == (1000, "OK", "")
    (answer,) = await receive_all([poll])
    assert answer.outcome == "OK"


async def in_thread(work: Any, *arguments: Any, **fields: Any) -> Any:
    return await trio.to_thread.run_sync(partial(work, *arguments, **fields))


async def test_stage_reached_before_the_connection_is_sent_first(server: Server) -> None:
    game = await new_game(server)
    with Browser(server) as browser:
        await in_thread(browser.get, f"/?gsid={game.gsid}")
    async with game.socket() as socket:
        assert await socket.stage() == "opened"


# End of a session


async def test_denial_sends_a_stage_and_closes_with_1000(server: Server, player: Player) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        assert await player.deny(game.gsid) == 200
        assert await socket.stage() == "denied"
        code, last = await socket.closed()
    assert (code, last["status"], last["error"]) == (1000, "ERROR", "session denied")


async def test_closed_session_closes_with_1000(server: Server) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        assert (await game.close()).status == 200
        code, last = await socket.closed(seconds=2)
    assert (code, last["status"], last["error"]) == (1000, "ERROR", "session closed")


async def test_confirmed_session_keeps_the_socket_open_until_the_login_is_delivered(
    server: Server, player: Player
) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        assert await player.confirm(game.gsid) == 303
        assert await socket.stage() == "confirmed"
        await socket.next("refresh")
        assert (await game.poll()).outcome == "OK"
        code, last = await socket.closed(seconds=2)
    assert (code, last["status"]) == (1000, "OK")
    async with game.socket() as late:
        code, last = await late.closed()
    assert (code, last["status"]) == (1000, "OK")


# Closing by the client


async def close_frame(socket: Socket) -> None:
    await socket.connection.aclose()


async def hang_up(socket: Socket) -> None:
    socket.reset()


async def leave(socket: Socket) -> None:
    await socket.stream.aclose()


@pytest.mark.parametrize("how", [close_frame, hang_up, leave])
async def test_client_that_disconnects_cancels_the_poll_held_by_another_worker(
    server: Server, rows: Rows, player: Player, how: Any
) -> None:
    one, other = server.workers()
    game = await new_game(server)
    async with game.socket(worker=one) as socket:
        await socket.event()
        poll = await game.begin_poll(other)
        await rows.until_polled(game.gsid)
        with trio.fail_after(CANCELLED_S * SLACK):
            await how(socket)
            (answer,) = await receive_all([poll])
    assert answer.status == 200
    assert set(answer.data) == {"status", "gsid", "ts", "started", "last_seen"}
    assert answer.data["status"] == "CANCELLED"
    assert answer.data["last_seen"] > 0
    # The session stays pending.
    assert await rows.status(game.gsid) == "pending"
    poll = await game.begin_poll(one)
    await rows.until_polled(game.gsid, 2)
    assert await player.confirm(game.gsid) == 303
    (answer,) = await receive_all([poll])
    assert answer.outcome == "OK"


async def test_replaced_socket_is_closed_and_cancels_no_poll(server: Server, rows: Rows, player: Player) -> None:
    one, other = server.workers()
    game = await new_game(server)
    async with game.socket(worker=one) as older:
        await older.event()
        poll = await game.begin_poll(one)
        await rows.until_polled(game.gsid)
        async with game.socket(worker=other) as newer:
            await newer.event()
            code, last = await older.closed()
            assert (code, last["status"]) == (1000, "ERROR")
            assert "replaced" in last["error"]
            await newer.next("refresh")
            assert (await rows.get(game.gsid))["cancels"] == 0
            assert await player.confirm(game.gsid) == 303
            (answer,) = await receive_all([poll])
    assert answer.outcome == "OK"


async def test_of_many_concurrent_sockets_one_stays_open_and_none_cancels(server: Server, rows: Rows) -> None:
    game = await new_game(server)
    codes: list[int] = []
    all_but_one_closed = trio.Event()

    async def one() -> None:
        async with game.socket() as socket:
            code, _ = await socket.closed(seconds=60)
            codes.append(code)
            if len(codes) == 19:
                all_but_one_closed.set()

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(one)
        with trio.fail_after(60):
            await all_but_one_closed.wait()
        assert (await rows.get(game.gsid))["cancels"] == 0
        assert codes == [1000] * 19
        nursery.cancel_scope.cancel()


async def test_client_that_disconnects_after_the_delivery_changes_nothing(
    server: Server, rows: Rows, player: Player
) -> None:
    game = await new_game(server)
    assert await player.confirm(game.gsid) == 303
    async with game.socket() as socket:
        await socket.event()
        assert (await game.poll()).outcome == "OK"
    assert await rows.status(game.gsid) == "delivered"
    assert (await game.poll()).status == 403
