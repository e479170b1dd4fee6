"""The WebSocket of a game session over the network: authentication, events, and closing (§6)."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from trio_websocket import ConnectionClosed

from sso.core.keys import public_der, public_pem
from tests.faults import SLACK
from tests.kit.browser import AuthenticatorApp, Browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import rsa_key
from tests.kit.held import (
    SOCKET,
    Answer,
    Connection,
    Game,
    Player,
    Rows,
    Socket,
    connect,
    new_address,
    new_game,
    open_socket,
    receive_all,
    rows_of,
)
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

HEARTBEAT_S = 1
CANCELLED_S = 1.0
UNWANTED_CANCEL_S = 0.1  # enough for the server to cancel the poll, if it wrongly did
UNKNOWN = "6a9ff4b2-3c1d-4e5f-8a7b-9c0d1e2f3a4b"
PRIVATE_KEY = rsa_key()
PUBLIC_KEY = public_pem(PRIVATE_KEY.public_key())
OTHER_KEY = rsa_key(1)


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two workers with a short heartbeat interval."""
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_WORKERS": "2",
        "SSO_RATE_LOGIN": "0",
        "SSO_GSID_HEARTBEAT_S": str(HEARTBEAT_S),
    }
    with running(tmp_path_factory.mktemp("sockets"), **settings) as server:
        yield server


@pytest.fixture(scope="module")
def player(server: Server) -> Player:
    return Player(server, new_user(server))


@pytest.fixture
async def rows(server: Server) -> AsyncIterator[Rows]:
    async with rows_of(server) as rows:
        yield rows


def signature(signed: str) -> str:
    return base64.b64encode(PRIVATE_KEY.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()


# Authentication


def evidence(game: Game, kind: str) -> dict[str, Any]:
    """Returns the options of a socket with valid evidence of this kind."""
    secret = game.location.partition("?Location=")[2]
    kinds: dict[str, dict[str, Any]] = {
        "address": {"address": game.address},
        "secret in the URL": {"query": f"?Location={secret}"},
        "whole address in a header": {"headers": {"Location": game.location}},
        "secret in Authorization": {"headers": {"Authorization": f"Location {secret}"}},
        "Request-Sign": {"headers": {"Request-Sign": signature(game.gsid)}},
        "Sign": {"headers": {"Sign": signature(game.gsid)}},
        "Authorization: Sign": {"headers": {"Authorization": f"Sign {signature(game.gsid)}"}},
    }
    return kinds[kind]


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("address", ""),
        ("secret in the URL", ""),
        ("whole address in a header", ""),
        ("secret in Authorization", ""),
        ("Request-Sign", PUBLIC_KEY),
        ("Sign", PUBLIC_KEY),
        ("Authorization: Sign", PUBLIC_KEY),
        ("secret in the URL", PUBLIC_KEY),
        ("address", PUBLIC_KEY),  # unlike for a poll
    ],
)
async def test_socket_with_valid_evidence_gets_the_first_heartbeat_at_once(server: Server, kind: str, key: str) -> None:
    game = await new_game(server, public_key=key)
    options = {"address": new_address(), **evidence(game, kind)}
    async with game.socket(**options) as socket:
        event = await socket.event(seconds=2)
    assert set(event) == {"event", "gsid", "ts", "last_seen"}
    assert event["event"] == "refresh"
    assert event["gsid"] == game.gsid
    assert abs(event["ts"] - event["last_seen"]) <= 1


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_origin_header_is_ignored(server: Server, origin: str) -> None:
    game = await new_game(server)
    async with game.socket(headers={"Origin": origin}) as socket:
        assert (await socket.event())["event"] == "refresh"


UNBOUND: dict[str, dict[str, Any]] = {
    "nothing, from elsewhere": {"address": "127.99.0.1"},
    "another Location": {"address": "127.99.0.1", "query": f"?Location={'x' * 43}"},
    "another Location beside the right address": {"query": f"?Location={'x' * 43}"},
    "signature of something else": {"headers": {"Request-Sign": signature("another")}},
    "not base64": {"headers": {"Request-Sign": "!!"}},
    "another key": {"headers": {"Public-Key": base64.b64encode(public_der(OTHER_KEY.public_key())).decode()}},
    "an unsigned Ip": {"address": "127.99.0.1", "headers": {"Ip": "127.0.0.1"}},
}


@pytest.mark.parametrize("kind", UNBOUND)
async def test_socket_without_valid_evidence_closes_with_4403_and_changes_nothing(
    server: Server, rows: Rows, kind: str
) -> None:
    game = await new_game(server, public_key=PUBLIC_KEY)
    before = dict(await rows.get(game.gsid))
    async with game.socket(**UNBOUND[kind]) as socket:
        code, last = await socket.closed()
    assert code == 4403
    assert set(last) == {"event", "status", "error", "gsid", "ts"}
    assert (last["event"], last["status"], last["gsid"]) == ("close", "ERROR", game.gsid)
    assert "why" not in last["error"], "the error is an id without a description"
    assert last["error"] in server.log()
    assert dict(await rows.get(game.gsid)) == before


async def test_repeated_evidence_closes_with_4403(server: Server) -> None:
    game = await new_game(server)
    secret = game.location.partition("?Location=")[2]
    async with game.socket(query=f"?Location={secret}&Location={secret}") as socket:
        code, last = await socket.closed()
    assert (code, last["error"]) == (4403, "Location: expected at most one, in one place")


async def test_signature_over_the_body_of_a_poll_closes_with_4403(server: Server) -> None:
    game = await new_game(server, public_key=PUBLIC_KEY)
    signed = signature(json.dumps({"gsid": game.gsid}))
    async with game.socket(address=new_address(), headers={"Request-Sign": signed}) as socket:
        assert (await socket.closed())[0] == 4403


async def test_signature_without_a_registered_key_closes_with_4403(server: Server) -> None:
    game = await new_game(server)
    async with game.socket(headers={"Request-Sign": signature(game.gsid)}) as socket:
        assert (await socket.closed())[0] == 4403


async def test_socket_of_another_client_neither_cancels_nor_replaces_nor_sets_last_seen(
    server: Server, rows: Rows, player: Player
) -> None:
    game = await new_game(server)
    poll = await game.begin_poll()
    await rows.until_polled(game.gsid)
    for _ in range(3):
        async with game.socket(address=new_address()) as attacker:
            assert (await attacker.closed())[0] == 4403
    assert (await game.info())["last_seen"] == 0
    async with game.socket() as own:
        await own.next("refresh")
        async with game.socket(address=new_address()) as attacker:
            assert (await attacker.closed())[0] == 4403
        await own.next("refresh")
        assert await player.confirm(game.gsid) == 303
        (answer,) = await receive_all([poll])
    assert answer.outcome == "OK"


@pytest.mark.parametrize("gsid", [UNKNOWN, "x", UNKNOWN.upper(), UNKNOWN + "0", "a" * 300, "%00", "%F0%9F%8E%AE"])
async def test_unknown_session_closes_with_4404(server: Server, gsid: str) -> None:
    async with open_socket(server, gsid) as socket:
        code, last = await socket.closed()
    assert code == 4404
    assert last["status"] == "ERROR"
    assert last["error"] in server.log()


async def test_expired_session_closes_with_4404(server: Server, rows: Rows) -> None:
    game = await new_game(server)
    await rows.run("UPDATE game_sessions SET ends = now() - interval '1 s' WHERE gsid = $1", game.gsid)
    async with game.socket() as socket:
        code, last = await socket.closed()
    assert (code, last["error"]) == (4404, "session expired")
    assert (await game.info())["last_seen"] == 0


async def test_session_that_expires_closes_with_4404_at_the_next_heartbeat(server: Server, rows: Rows) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        await rows.run("UPDATE game_sessions SET ends = now() - interval '1 s' WHERE gsid = $1", game.gsid)
        code, last = await socket.closed()
    assert (code, last["error"]) == (4404, "session expired")


# Handshake


async def shake_hands(server: Server, path: str, first: str = "HTTP/1.1", **changes: str | None) -> Answer:
    lines: dict[str, str | None] = {
        "Host": "localhost",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    async with await Connection.open(server) as connection:
        await connection.stream.send_all(f"GET {path} {first}\r\n{head}\r\n".encode())
        return await connection.receive()


async def test_valid_handshake_switches_protocols_without_compression(server: Server) -> None:
    game = await new_game(server, address="127.0.0.1")
    offered = "permessage-deflate; client_max_window_bits, x-webkit-deflate-frame"
    answer = await shake_hands(server, SOCKET + game.gsid, Sec_WebSocket_Extensions=offered)
    assert answer.status == 101
    assert answer.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert "sec-websocket-extensions" not in answer.headers


@pytest.mark.parametrize(
    "changes",
    [
        {"Upgrade": None, "Connection": None},
        {"Upgrade": None},
        {"Connection": "close"},
        {"Sec_WebSocket_Key": None},
        {"Sec_WebSocket_Version": "8"},
        {"Sec_WebSocket_Version": None},
        {"first": "HTTP/1.0"},
    ],
    ids=str,
)
async def test_invalid_handshake_is_4xx(server: Server, changes: dict[str, Any]) -> None:
    game = await new_game(server, address="127.0.0.1")
    answer = await shake_hands(server, SOCKET + game.gsid, **changes)
    assert 400 <= answer.status < 500
    assert (await game.info())["last_seen"] == 0


@pytest.mark.parametrize("path", ["", "../x", "..%2Fx", "a/b", "%2e%2e/%2e%2e/etc", "x" * 40_000, "../../../login"])
async def test_path_without_a_gsid_is_refused(server: Server, path: str) -> None:
    answer = await shake_hands(server, SOCKET + path)
    # A segment that could be a gsid is refused with a close frame.
    assert 400 <= answer.status < 500 or (answer.status == 101 and "/" not in path)


async def test_other_paths_have_no_websocket(server: Server) -> None:
    for path in ("/", "/login", "/proxy/api/login", "/nothing"):
        assert 400 <= (await shake_hands(server, path)).status < 500


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
            code, last = await older.closed(seconds=2)
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
        with trio.fail_after(20):
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


# Messages of the client


TOO_LARGE: dict[str, str | bytes] = {
    "text": "x" * 4097,
    "bytes": b"x" * 4097,
    "few characters of many bytes": "🎮" * 1025,
    "larger than what is read at once": b"x" * 300_000,
}


@pytest.mark.parametrize("kind", TOO_LARGE)
async def test_message_over_4_kb_closes_with_1009_and_cancels_no_poll(server: Server, rows: Rows, kind: str) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        poll = await game.begin_poll()
        await rows.until_polled(game.gsid)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ignore_close, partial(socket.connection.send_message, TOO_LARGE[kind]))
            code, last = await socket.closed()
            nursery.cancel_scope.cancel()
        await poll.close()
    if len(TOO_LARGE[kind]) < 10_000:
        assert (code, last["event"], last["status"]) == (1009, "close", "ERROR")
    else:  # a client that is still sending may see a reset before it reads the close frame
        assert code in (1006, 1009)
    await trio.sleep(UNWANTED_CANCEL_S)
    assert (await rows.get(game.gsid))["cancels"] == 0, "the server closed the socket, not the client"


async def test_too_many_messages_close_with_1008_and_cancel_no_poll(server: Server, rows: Rows) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                for _ in range(200):
                    await socket.connection.send_message("x")

            nursery.start_soon(ignore_close, flood)
            code, last = await socket.closed()
            nursery.cancel_scope.cancel()
    assert (code, last["event"], last["status"]) == (1008, "close", "ERROR")
    await trio.sleep(UNWANTED_CANCEL_S)
    assert (await rows.get(game.gsid))["cancels"] == 0


async def ignore_close(work: Any) -> None:
    with suppress(ConnectionClosed):
        await work()


@pytest.mark.parametrize("frame", ["", b"", "x" * 4096, b"\x00" * 4096, '{"event": "close"}'], ids=len)
async def test_messages_of_a_client_are_ignored(server: Server, frame: str | bytes) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        for _ in range(3):
            await socket.connection.send_message(frame)
        with trio.fail_after(10):
            await socket.connection.ping()  # answered after the messages have been read
        assert socket.connection.closed is None


async def test_pings_are_answered(server: Server) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        with trio.fail_after(10):
            await socket.connection.ping(b"are you there?")


HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PING = b"\x89\x80abcd"


@pytest.mark.parametrize("early", [PING, b"\x00", b"x" * 5000, b"GET / HTTP/1.1\r\n\r\n"], ids=len)
async def test_data_before_the_end_of_the_handshake_does_not_harm_other_clients(server: Server, early: bytes) -> None:
    workers = server.workers()
    game = await new_game(server)
    for worker in workers:
        async with await connect(server, game.address, worker) as raw:
            await raw.stream.send_all(HANDSHAKE.format(path=SOCKET + game.gsid).encode() + early)
            await raw.receive()  # 101, an error, or a closed connection
            async with await connect(server, worker=worker) as connection:
                assert (await connection.ask("/healthz")).status == 200
    assert server.workers() == workers


async def test_flood_of_pings_on_one_socket_does_not_delay_others(server: Server) -> None:
    (worker, _) = server.workers()
    game, other = await new_game(server), await new_game(server)
    async with await connect(server, game.address, worker) as raw, other.socket(worker=worker) as socket:
        await raw.stream.send_all(HANDSHAKE.format(path=SOCKET + game.gsid).encode())
        assert (await raw.receive()).status == 101
        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                with suppress(trio.BrokenResourceError):
                    while True:
                        await raw.stream.send_all(PING * 1000)

            async def read() -> None:
                with suppress(trio.BrokenResourceError):
                    while await raw.stream.receive_some(65536):
                        pass

            nursery.start_soon(flood)
            nursery.start_soon(read)
            await socket.event()
            for _ in range(2):
                began = trio.current_time()
                await socket.next("refresh")
                async with await connect(server) as connection:
                    assert (await connection.ask("/healthz")).status == 200
                assert trio.current_time() - began < HEARTBEAT_S * 10
            nursery.cancel_scope.cancel()
