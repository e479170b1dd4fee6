"""The WebSocket of a game session over the network: authentication and the handshake (§6)."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from sso.core.keys import public_der, public_pem
from tests.kit.held import (
    SOCKET,
    Answer,
    Connection,
    Game,
    Player,
    Rows,
    new_address,
    new_game,
    open_socket,
    receive_all,
)
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

UNKNOWN = "6a9ff4b2-3c1d-4e5f-8a7b-9c0d1e2f3a4b"
PRIVATE_KEY = rsa_key()
PUBLIC_KEY = public_pem(PRIVATE_KEY.public_key())
OTHER_KEY = rsa_key(1)


@pytest.fixture(scope="module")
def server(quick_sockets: Server) -> Server:
    return quick_sockets


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
