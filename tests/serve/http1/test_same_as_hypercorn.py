"""The same requests to both servers: the same status, body, and headers, but for what is written down here."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.kit.raw_http import Answer, Running, serving
from tests.serve.http1.test_second_opinion import BAD, GOOD

# Hypercorn repeats no connection header of HTTP/1.0, and never keeps such a connection.
OF_THE_CONNECTION = {"date", "connection"}


@asynccontextmanager
async def both() -> AsyncIterator[tuple[Running, Running]]:
    async with serving("builtin") as builtin, serving("hypercorn") as hypercorn:
        yield builtin, hypercorn


def seen(answer: Answer) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name not in OF_THE_CONNECTION}
    return answer.status, answer.body, headers


async def test_what_is_well_formed_is_answered_alike() -> None:
    async with both() as (builtin, hypercorn):
        for raw in GOOD:
            if b"Expect" not in raw:  # hypercorn's application does not see that header
                assert seen(await builtin.ask(raw)) == seen(await hypercorn.ask(raw)), raw


@pytest.mark.parametrize("name", BAD)
async def test_malformed_request_is_refused_alike_and_nothing_after_it_is_served(name: str) -> None:
    following = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    async with both() as (builtin, hypercorn):
        ours, theirs = await builtin.ask(BAD[name]), await hypercorn.ask(BAD[name])
        assert ours.status in (400, 431)
        assert seen(ours) == seen(theirs)
        assert ours.headers["connection"] == theirs.headers["connection"] == "close"
        for server in (builtin, hypercorn):
            assert (await server.response_bytes(BAD[name] + following)).count(b"HTTP/1.1 ") == 1


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
async def test_generated_requests_are_answered_alike(seed: int) -> None:
    chance = random.Random(seed)
    async with both() as (builtin, hypercorn), await builtin.open() as ours, await hypercorn.open() as theirs:
        for _ in range(60):
            raw = generated(chance)
            answers = []
            for connection in (ours, theirs):
                await connection.send(raw)
                answers.append(await connection.answer(head_only=raw.startswith(b"HEAD ")))
            assert seen(answers[0]) == seen(answers[1]), raw
