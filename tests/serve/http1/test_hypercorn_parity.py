"""Both servers give the same status, body and headers to the same request, except for those listed here."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.kit.raw_http import RawResponse, RunningServer, serving
from tests.serve.http1.test_parser_against_h11 import MALFORMED, WELL_FORMED

# Hypercorn never keeps an HTTP/1.0 connection open, and sends it no connection header.
IGNORED_HEADERS = {"date", "connection"}


@asynccontextmanager
async def both_servers() -> AsyncIterator[tuple[RunningServer, RunningServer]]:
    async with serving("builtin") as builtin, serving("hypercorn") as hypercorn:
        yield builtin, hypercorn


def compared(response: RawResponse) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in response.headers.items() if name not in IGNORED_HEADERS}
    return response.status, response.body, headers


async def test_well_formed_requests_get_the_same_response() -> None:
    async with both_servers() as (builtin, hypercorn):
        for raw in WELL_FORMED:
            if b"Expect" not in raw:  # the application on hypercorn does not get this header
                assert compared(await builtin.request(raw)) == compared(await hypercorn.request(raw)), raw


@pytest.mark.parametrize("name", MALFORMED)
async def test_malformed_request_gets_the_same_rejection_and_nothing_after_it_is_served(name: str) -> None:
    following = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    async with both_servers() as (builtin, hypercorn):
        first, second = await builtin.request(MALFORMED[name]), await hypercorn.request(MALFORMED[name])
        assert first.status in (400, 431)
        assert compared(first) == compared(second)
        assert first.headers["connection"] == second.headers["connection"] == "close"
        for server in (builtin, hypercorn):
            assert (await server.request_to_end(MALFORMED[name] + following)).count(b"HTTP/1.1 ") == 1


NAMES = (b"Accept", b"Cookie", b"X-A", b"x-a", b"If-None-Match", b"User-Agent", b"Content-Type", b"Origin")
VALUES = (b"", b"a", b"a b", b"\xff\xfe", b"text/html;q=0.5, */*", b"a\tb", b'"x"', b"a" * 3000, b";;,,==")
TARGETS = (
    b"/",
    b"/a/b",
    b"/%41%2f%ff",
    b"/a?b=c",
    b"/?",
    b"/a%zz?%=&&",
    b"//a//b",
    b"/" + b"a" * 4000,
    b"/a;b=c:@!$'()*+,",
)


def generated(chance: random.Random) -> bytes:
    body = chance.choice((b"", b"", b"x", b"a=b&c=d" * 30, bytes(range(256)) * 40))
    method = chance.choice((b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"HEAD", b"PROPFIND"))
    lines = [b"%b %b HTTP/1.1" % (method, chance.choice(TARGETS)), b"Host: x"]
    lines += [
        b"%b:%b%b" % (name, chance.choice((b"", b" ", b"  ")), chance.choice(VALUES))
        for name in chance.choices(NAMES, k=4)
    ]
    if not body:
        return b"\r\n".join((*lines, b"", b""))
    if chance.random() < 0.5:
        return b"\r\n".join((*lines, b"Content-Length: %d" % len(body), b"", body))
    size = chance.randint(1, len(body))
    pieces = [body[at : at + size] for at in range(0, len(body), size)][:50]
    framed = b"".join(b"%X\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"\r\n".join((*lines, b"Transfer-Encoding: chunked", b"", framed + b"0\r\n\r\n"))


@pytest.mark.parametrize("seed", range(4))
async def test_generated_requests_get_the_same_response(seed: int) -> None:
    chance = random.Random(seed)
    async with both_servers() as (builtin, hypercorn), await builtin.open() as first, await hypercorn.open() as second:
        for _ in range(60):
            raw = generated(chance)
            responses = []
            for connection in (first, second):
                await connection.send(raw)
                responses.append(await connection.response(head_only=raw.startswith(b"HEAD ")))
            assert compared(responses[0]) == compared(responses[1]), raw
