"""The same requests to both servers: the same status, body, and headers, but for what is written down here."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.kit.raw_http import Answer, Running, serving
from tests.serve.lane.test_second_opinion import BAD, GOOD

# The lane refuses what hypercorn lets pass: each of these is a second way to say something, or nobody's.
STRICTER = {
    "two lengths", "a list of lengths", "length and chunks", "chunks and length", "a length beyond all bounds",
    "chunked twice", "chunks in 1.0", "a folded header", "a folded header with a tab", "a bare LF",
    "a bare LF between headers", "a control character in a value", "a whole address", "an authority",
    "CONNECT with a path", "a path without a slash", "a star", "a fragment", "a method in small letters", "version 0.9",
    "version 1.2", "version 2.0", "a size with a blank after it", "a size beyond all bounds",
    "a bare CR in an extension", "a long extension", "many extensions", "a folded trailer", "long trailers",
}  # fmt: skip
# Hypercorn says 501 to a coding that it does not know, and 400 without a body to everything else.
OTHER_STATUS = {
    "another coding", "two codings", "chunked as a list", "something like chunked", "identity", "chunked in quotes",
}  # fmt: skip
# Hypercorn repeats no connection header of HTTP/1.0, and never keeps such a connection.
OF_THE_CONNECTION = {"date", "connection"}


@asynccontextmanager
async def both() -> AsyncIterator[tuple[Running, Running]]:
    async with serving("lane") as lane, serving("hypercorn") as hypercorn:
        yield lane, hypercorn


def seen(answer: Answer) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name not in OF_THE_CONNECTION}
    return answer.status, answer.body, headers


async def test_what_is_well_formed_is_answered_alike() -> None:
    async with both() as (lane, hypercorn):
        for raw in GOOD:
            if b"Expect" not in raw:  # hypercorn asks for the body at once, the lane when it is wanted
                assert seen(await lane.ask(raw)) == seen(await hypercorn.ask(raw)), raw


async def test_what_is_malformed_is_refused_by_both() -> None:
    async with both() as (lane, hypercorn):
        for name, raw in BAD.items():
            ours = await lane.ask(raw)
            assert ours.status in (400, 431), name
            if name in STRICTER:
                continue
            theirs = await hypercorn.ask(raw)
            assert theirs.status == (501 if name in OTHER_STATUS else 400), name


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
    b"/" + b"a" * 5000,
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
    async with both() as (lane, hypercorn), await lane.open() as ours, await hypercorn.open() as theirs:
        for _ in range(60):
            raw = generated(chance)
            answers = []
            for connection in (ours, theirs):
                await connection.send(raw)
                answers.append(await connection.answer(head_only=raw.startswith(b"HEAD ")))
            assert seen(answers[0]) == seen(answers[1]), raw
