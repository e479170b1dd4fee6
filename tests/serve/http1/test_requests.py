"""Requests and answers as they are on the wire."""

from typing import Any

import pytest
import trio

from tests.kit.raw_http import SERVERS, body_of, echo, reply, serving

GET = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"


def post(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join((b"POST /p HTTP/1.1", b"Host: x", b"Content-Length: %d" % len(body), *headers, b"", body))


def chunked(*pieces: bytes) -> bytes:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


async def test_a_request_is_understood_and_the_connection_kept() -> None:
    async with serving("builtin") as server, await server.open() as raw:
        for _ in range(3):
            await raw.send(GET)
            answer = await raw.answer()
            assert answer.status == 200
            assert answer.json["path"] == "/a"
            assert answer.json["query_string"] == "b=c"
            assert "connection" not in answer.headers
            assert answer.headers["date"].endswith(" GMT")


@pytest.mark.parametrize("kind", SERVERS)
async def test_requests_may_come_together_and_are_answered_in_order(kind: str) -> None:
    async with serving(kind) as server, await server.open() as raw:
        await raw.send(post(b"first") + chunked(b"sec", b"ond") + GET + post(b"last", b"Connection: close"))
        assert [(await raw.answer()).json["body"] for _ in range(4)] == ["first", "second", "", "last"]
        assert await raw.is_closed()


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_request_may_come_byte_by_byte(kind: str) -> None:
    async with serving(kind) as server, await server.open() as raw:
        for byte in chunked(b"hello", b"you"):
            await raw.send(bytes([byte]))
            await trio.lowlevel.checkpoint()
        assert (await raw.answer()).json["body"] == "helloyou"


@pytest.mark.parametrize("kind", SERVERS)
async def test_an_empty_line_before_a_request_is_let_pass(kind: str) -> None:
    async with serving(kind) as server, await server.open() as raw:
        await raw.send(b"\r\n" + GET + b"\r\n" + GET)
        assert (await raw.answer()).status == (await raw.answer()).status == 200


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
async def test_a_connection_ends_when_it_was_asked_to(head: bytes, kept: bool) -> None:
    async with serving("builtin") as server, await server.open() as raw:
        await raw.send(head)
        answer = await raw.answer()
        expected = ("keep-alive" if b"1.0" in head else None) if kept else "close"
        assert answer.headers.get("connection") == expected
        if kept:
            await raw.send(head)
            assert (await raw.answer()).status == 200
        else:
            assert await raw.is_closed()


@pytest.mark.parametrize("kind", SERVERS)
async def test_head_has_the_headers_and_no_body(kind: str) -> None:
    async with serving(kind) as server, await server.open() as raw:
        await raw.send(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        answer = await raw.answer(head_only=True)
        assert int(answer.headers["content-length"]) > 10
        assert (await raw.answer()).json["method"] == "GET"


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_body_is_asked_for_when_it_is_wanted(kind: str) -> None:
    async with serving(kind) as server, await server.open() as raw:
        head, _, body = post(b"hello", b"Expect: 100-continue").partition(b"\r\n\r\n")
        await raw.send(head + b"\r\n\r\n")
        assert (await raw.answer()).status == 100
        await raw.send(body)
        assert (await raw.answer()).json["body"] == "hello"
        await raw.send(GET)
        assert (await raw.answer()).status == 200


async def refuse(scope: Any, receive: Any, send: Any) -> None:
    """Without a look at the body."""
    await reply(send, b"no", 403)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_body_that_is_not_wanted_is_not_asked_for(kind: str) -> None:
    async with serving(kind, refuse) as server, await server.open() as raw:
        await raw.send(post(b"hello", b"Expect: 100-continue").partition(b"hello")[0])
        answer = await raw.answer()
        assert (answer.status, answer.headers["connection"]) == (403, "close")
        assert await raw.is_closed()


async def test_a_body_that_nobody_read_is_passed_over_or_ends_the_connection() -> None:
    async with serving("builtin", refuse) as server:
        async with await server.open() as raw:
            await raw.send(post(b"a" * 100) + chunked(b"b" * 100) + GET)
            for _ in range(3):
                answer = await raw.answer()
                assert (answer.status, answer.headers.get("connection")) == (403, None)
        async with await server.open() as raw:
            await raw.send(post(b"a" * 100_000)[:1000])
            answer = await raw.answer()
            assert (answer.status, answer.headers.get("connection")) == (403, "close")
            await raw.send(b"a" * 99_000)
            assert await raw.is_closed()


async def stream(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-length", b"6")] if scope["path"] == "/told" else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in (b"on", b"", b"etw"):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"o"})


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("path", [b"/told", b"/untold"])
async def test_an_answer_may_be_streamed(path: bytes, version: bytes) -> None:
    async with serving("builtin", stream) as server, await server.open() as raw:
        await raw.send(b"GET %b HTTP/%b\r\nHost: x\r\nConnection: keep-alive\r\n\r\n" % (path, version))
        answer = await raw.answer()
        assert answer.body == b"onetwo"
        framing = "content-length" if path == b"/told" else "transfer-encoding" if version == b"1.1" else "connection"
        assert framing in answer.headers
        assert (answer.headers.get("connection") == "close") is (framing == "connection")


async def test_an_answer_without_a_body_has_none() -> None:
    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204 if scope["path"] == "/204" else 304, "headers": []})
        await send({"type": "http.response.body", "body": b"must not be sent"})

    async with serving("builtin", nothing) as server, await server.open() as raw:
        await raw.send(GET + b"GET /204 HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        for expected in (304, 204, 304):
            answer = await raw.answer()
            assert answer.status == expected
            assert "content-length" not in answer.headers


Bad = list[dict[str, Any]]
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
async def test_an_application_that_errs_is_a_500_and_no_more(messages: Bad) -> None:
    async def err(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async with serving("builtin", err) as server:
        answer = await server.ask(GET)
        assert (answer.status, answer.headers["connection"]) == (500, "close")
        assert answer.json == {"status": "ERROR", "error": "internal error"}


async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one() -> None:
    async def break_off(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        raise ValueError("no more")

    async with serving("builtin", break_off) as server:
        everything = await server.response_bytes(GET)
        assert everything.endswith(b"\r\n\r\n4\r\nsome\r\n")


@pytest.mark.parametrize("kind", SERVERS)
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
async def test_what_is_refused_is_told_like_everything_else(kind: str, raw: bytes, status: int) -> None:
    async with serving(kind) as server:
        answer = await server.ask(raw)
        assert answer.status == status
        assert answer.json["status"] == "ERROR"
        assert answer.headers["connection"] == "close"
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


@pytest.mark.parametrize("kind", SERVERS)
async def test_nothing_after_what_was_refused_is_served(kind: str) -> None:
    async with serving(kind) as server:
        everything = await server.response_bytes(b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + GET)
        assert everything.count(b"HTTP/1.1 ") == 1


async def test_a_client_that_leaves_in_the_middle_of_a_body_ends_its_request() -> None:
    ended = trio.Event()

    async def read(scope: Any, receive: Any, send: Any) -> None:
        try:
            await body_of(receive)
        finally:
            ended.set()

    async with serving("builtin", read) as server:
        async with await server.open() as raw:
            await raw.send(post(b"hello")[:-2])
        with trio.fail_after(5):
            await ended.wait()
        assert (await server.ask(b"GET / HTTP/1.0\r\n\r\n")).status == 500  # it answers nothing, but lives


async def test_a_client_that_has_said_all_it_will_gets_its_answer() -> None:
    async def slowly(scope: Any, receive: Any, send: Any) -> None:
        await trio.sleep(0.05)
        await echo(scope, receive, send)

    async with serving("builtin", slowly) as server, await server.open() as raw:
        await raw.send(GET)
        await raw.stream.send_eof()
        assert (await raw.answer()).status == 200
