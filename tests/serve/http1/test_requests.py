"""Requests and responses of the HTTP servers, byte by byte."""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.kit.raw_http import echo, read_body, reply, serving

GET = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"


def post(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join((b"POST /p HTTP/1.1", b"Host: x", b"Content-Length: %d" % len(body), *headers, b"", body))


def chunked(*pieces: bytes) -> bytes:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


async def test_request_is_parsed_and_its_connection_kept() -> None:
    async with serving() as server, await server.open() as connection:
        for _ in range(3):
            await connection.send(GET)
            response = await connection.response()
            assert response.status == 200
            assert response.json["path"] == "/a"
            assert response.json["query_string"] == "b=c"
            assert "connection" not in response.headers
            assert response.headers["date"].endswith(" GMT")


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving() as server, await server.open() as connection:
        await connection.send(post(b"first") + chunked(b"sec", b"ond") + GET + post(b"last", b"Connection: close"))
        assert [(await connection.response()).json["body"] for _ in range(4)] == ["first", "second", "", "last"]
        assert await connection.is_closed()


async def test_request_can_arrive_byte_by_byte() -> None:
    async with serving() as server, await server.open() as connection:
        for byte in chunked(b"hello", b"you"):
            await connection.send(bytes([byte]))
            await trio.lowlevel.checkpoint()
        assert (await connection.response()).json["body"] == "helloyou"


async def test_empty_line_before_a_request_is_ignored() -> None:
    async with serving() as server, await server.open() as connection:
        await connection.send(b"\r\n" + GET + b"\r\n" + GET)
        assert (await connection.response()).status == (await connection.response()).status == 200


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: foo , Close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n", True),
    ],
)
async def test_connection_header_and_version_decide_about_keep_alive(head: bytes, kept: bool) -> None:
    async with serving() as server, await server.open() as connection:
        await connection.send(head)
        response = await connection.response()
        expected = ("keep-alive" if b"1.0" in head else None) if kept else "close"
        assert response.headers.get("connection") == expected
        if kept:
            await connection.send(head)
            assert (await connection.response()).status == 200
        else:
            assert await connection.is_closed()


async def test_response_to_head_has_headers_and_no_body() -> None:
    async with serving() as server, await server.open() as connection:
        await connection.send(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        response = await connection.response(head_only=True)
        assert int(response.headers["content-length"]) > 10
        assert (await connection.response()).json["method"] == "GET"


async def test_100_continue_is_sent_when_the_application_reads_the_body() -> None:
    async with serving() as server, await server.open() as connection:
        head, _, body = post(b"hello", b"Expect: 100-continue").partition(b"\r\n\r\n")
        await connection.send(head + b"\r\n\r\n")
        assert (await connection.response()).status == 100
        await connection.send(body)
        assert (await connection.response()).json["body"] == "hello"
        await connection.send(GET)
        assert (await connection.response()).status == 200


async def refuse(scope: Any, receive: Any, send: Any) -> None:
    """Responds without reading the body."""
    await reply(send, b"no", 403)


async def test_100_continue_is_not_sent_if_the_application_does_not_read_the_body() -> None:
    async with serving(refuse) as server, await server.open() as connection:
        await connection.send(post(b"hello", b"Expect: 100-continue").partition(b"hello")[0])
        response = await connection.response()
        assert (response.status, response.headers["connection"]) == (403, "close")
        assert await connection.is_closed()


async def test_unread_body_is_skipped_if_received_and_else_closes_the_connection() -> None:
    async with serving(refuse) as server:
        async with await server.open() as connection:
            await connection.send(post(b"a" * 100) + chunked(b"b" * 100) + GET)
            for _ in range(3):
                response = await connection.response()
                assert (response.status, response.headers.get("connection")) == (403, None)
        async with await server.open() as connection:
            await connection.send(post(b"a" * 100_000)[:1000])
            response = await connection.response()
            assert (response.status, response.headers.get("connection")) == (403, "close")
            await connection.send(b"a" * 99_000)
            assert await connection.is_closed()


async def stream(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-length", b"6")] if scope["path"] == "/with-length" else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in (b"on", b"", b"etw"):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"o"})


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("path", [b"/with-length", b"/without-length"])
async def test_response_can_be_streamed(path: bytes, version: bytes) -> None:
    async with serving(stream) as server, await server.open() as connection:
        await connection.send(b"GET %b HTTP/%b\r\nHost: x\r\nConnection: keep-alive\r\n\r\n" % (path, version))
        response = await connection.response()
        assert response.body == b"onetwo"
        framing = (
            "content-length" if path == b"/with-length" else "transfer-encoding" if version == b"1.1" else "connection"
        )
        assert framing in response.headers
        assert (response.headers.get("connection") == "close") is (framing == "connection")


async def test_responses_204_and_304_have_no_body() -> None:
    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204 if scope["path"] == "/204" else 304, "headers": []})
        await send({"type": "http.response.body", "body": b"must not be sent"})

    async with serving(nothing) as server, await server.open() as connection:
        await connection.send(GET + b"GET /204 HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        for expected in (304, 204, 304):
            response = await connection.response()
            assert response.status == expected
            assert "content-length" not in response.headers


Messages = list[dict[str, Any]]
START: dict[str, Any] = {"type": "http.response.start", "status": 200, "headers": []}
LONG = START | {"headers": [(b"content-length", b"10")]}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [START],
        [{"type": "http.response.body", "body": b"x"}],
        [START, START],
        [LONG, {"type": "http.response.body", "body": b"short"}],
        [START | {"headers": [(b"a", b"b\r\nc: d")]}, {"type": "http.response.body", "body": b"x"}],
        [{"type": "nonsense"}],
    ],
)
async def test_invalid_response_of_the_application_becomes_500(messages: Messages) -> None:
    async def invalid(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async with serving(invalid) as server:
        response = await server.request(GET)
        assert (response.status, response.headers["connection"]) == (500, "close")
        assert response.json == {"status": "ERROR", "error": "internal error"}


async def test_failed_response_is_not_terminated_like_a_complete_one() -> None:
    async def break_off(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        raise ValueError("no more")

    async with serving(break_off) as server:
        everything = await server.request_to_end(GET)
        assert everything.endswith(b"\r\n\r\n4\r\nsome\r\n")


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/1.1\nHost: x\n", 400),
        (b"GET /" + b"a" * 40_000, 414),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 40_000, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 9000 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 150 + b"\r\n", 431),
        (chunked(b"hello").replace(b"\r\n5\r\n", b"\r\n+5\r\n"), 400),
        (chunked(b"hello").replace(b"hello", b"hello!"), 400),
    ],
)
async def test_rejection_has_the_format_and_headers_of_other_responses(raw: bytes, status: int) -> None:
    async with serving() as server:
        response = await server.request(raw)
        assert response.status == status
        assert response.json["status"] == "ERROR"
        assert response.headers["connection"] == "close"
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["cache-control"] == "no-store"
        assert "server" not in response.headers


async def test_nothing_after_a_rejected_request_is_served() -> None:
    async with serving() as server:
        everything = await server.request_to_end(b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + GET)
        assert everything.count(b"HTTP/1.1 ") == 1


async def test_disconnect_during_the_body_cancels_the_request() -> None:
    ended = trio.Event()

    async def read(scope: Any, receive: Any, send: Any) -> None:
        try:
            await read_body(receive)
        finally:
            ended.set()

    async with serving(read) as server:
        async with await server.open() as connection:
            await connection.send(post(b"hello")[:-2])
        with trio.fail_after(60):
            await ended.wait()
        assert (
            await server.request(b"GET / HTTP/1.0\r\n\r\n")
        ).status == 500  # the server still runs; this application never responds


async def test_client_that_has_shut_down_its_sending_side_gets_its_response() -> None:
    async def slowly(scope: Any, receive: Any, send: Any) -> None:
        await wait_all_tasks_blocked()  # the end of the stream has arrived
        await echo(scope, receive, send)

    async with serving(slowly) as server, await server.open() as connection:
        await connection.send(GET)
        await connection.stream.send_eof()
        assert (await connection.response()).status == 200
