"""Every request that our parser accepts means the same to h11: method, target, headers, body and its end.

Our parser may reject requests that h11 accepts, but no accepted request may have two meanings.
"""

import random

import h11
import pytest

from sso.serve.http1.body import request_body
from sso.serve.http1.head import END, read_head
from sso.serve.http1.rejections import RequestRejected
from sso.serve.server_limits import ServerLimits
from tests.kit.long_tests import IS_LONG_RUN

LIMITS = ServerLimits()
REQUESTS = 20_000 if IS_LONG_RUN else 4000  # that are changed at random

Request = tuple[bytes, bytes, bytes, list[tuple[bytes, bytes]], bytes, bytes]


def parse(raw: bytes) -> Request:
    """Returns the request as our parser understands it, and the bytes after it. Raises RequestRejected."""
    end = raw.find(END) + len(END)
    if end < len(END):
        raise RequestRejected(408, "incomplete")
    head = read_head(raw[:end], LIMITS.max_headers)
    rest, data = raw[end:], b""
    if body := request_body(head.length, LIMITS):
        data, rest = body.feed(rest)
        if not body.done:
            raise RequestRejected(408, "incomplete")
    target = head.path + (b"?" + head.query if b"?" in raw.split(b" ")[1] else b"")
    return head.method.encode(), target, head.version.encode(), head.headers, data, rest


def parse_with_h11(raw: bytes) -> Request:
    """Returns the same as h11 understands it. Raises h11.RemoteProtocolError."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1024)
    connection.receive_data(raw)
    request, data = connection.next_event(), b""
    if not isinstance(request, h11.Request):
        raise h11.RemoteProtocolError("incomplete")
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            raise h11.RemoteProtocolError("incomplete")
        data += bytes(event.data)
    rest = connection.trailing_data[0]
    return request.method, request.target, request.http_version, list(request.headers), data, rest


HOST = b"Host: x\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
WELL_FORMED = [
    b"GET / HTTP/1.1\r\n" + HOST + END[2:],
    b"GET /a?b=c&d=%20 HTTP/1.1\r\n" + HOST + b"Accept: */*\r\nCookie: a=b; c=\xff\r\nX-Empty:\r\nX:  y \t \r\n\r\n",
    b"HEAD /a%2Fb? HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\n" + HOST + END[2:],
    b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n",
    b"POST /x HTTP/1.1\r\n" + HOST + b"content-length: 0\r\nExpect: 100-continue\r\n\r\n",
    b"PUT /x HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\nGET",
    b"PUT /x HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n5;a=b\r\nhello\r\n00A;x\r\n0123456789\r\n000\r\nT: v\r\n\r\n",
    b"BREW /pot HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\ntea",
    b"DELETE /%zz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
]


@pytest.mark.parametrize("raw", WELL_FORMED)
def test_well_formed_request_means_the_same_to_h11(raw: bytes) -> None:
    assert parse(raw) == parse_with_h11(raw)


def line(text: bytes) -> bytes:
    return text + b"\r\n" + HOST + END[2:]


def headers(text: bytes, body: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\n" + HOST + text + b"\r\n\r\n" + body


def chunks(text: bytes) -> bytes:
    return headers(CHUNKED[:-2], text)


MALFORMED = {
    "two lengths": headers(b"Content-Length: 5\r\nContent-Length: 5", b"hello"),
    "two different lengths": headers(b"Content-Length: 5\r\nContent-Length: 6", b"hello!"),
    "a list of lengths": headers(b"Content-Length: 5, 5", b"hello"),
    "length and chunks": headers(b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
    "chunks and length": headers(b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n"),
    "a signed length": headers(b"Content-Length: +5", b"hello"),
    "a negative length": headers(b"Content-Length: -5"),
    "a length with a blank": headers(b"Content-Length: 5 5", b"hello"),
    "a length in other digits": headers("Content-Length: ٥".encode()),
    "a length in hexadecimal": headers(b"Content-Length: 0x5", b"hello"),
    "no length": headers(b"Content-Length:"),
    "a length beyond all bounds": headers(b"Content-Length: 99999999999999999999"),
    "another coding": headers(b"Transfer-Encoding: gzip"),
    "two codings": headers(b"Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"),
    "chunked twice": headers(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
    "chunked as a list": headers(b"Transfer-Encoding: chunked, chunked", b"0\r\n\r\n"),
    "something like chunked": headers(b"Transfer-Encoding: xchunked", b"0\r\n\r\n"),
    "identity": headers(b"Transfer-Encoding: identity"),
    "chunked in quotes": headers(b'Transfer-Encoding: "chunked"', b"0\r\n\r\n"),
    "chunked after a vertical tab": headers(b"Transfer-Encoding: \x0bchunked", b"0\r\n\r\n"),
    "chunks in 1.0": b"POST / HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "a blank before the colon": headers(b"Content-Length : 5", b"hello"),
    "a folded header": headers(b"A: b\r\n c"),
    "a folded header with a tab": headers(b"Transfer-Encoding:\r\n\tchunked", b"0\r\n\r\n"),
    "a header that begins with a blank": b"GET / HTTP/1.1\r\n A: b\r\n" + HOST + b"\r\n",
    "a bare LF": b"GET / HTTP/1.1\nHost: x\n\n\r\n\r\n",
    "a bare LF between headers": b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "a bare CR": headers(b"A: b\rC: d"),
    "NUL in a value": headers(b"A: b\x00"),
    "NUL in a name": headers(b"A\x00: b"),
    "NUL in the target": line(b"GET /\x00 HTTP/1.1"),
    "a control character in a value": headers(b"A: b\x01"),
    "a name in other letters": headers("É: b".encode()),
    "no name": headers(b": b"),
    "no colon": headers(b"nonsense"),
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "two hosts in 1.0": b"GET / HTTP/1.0\r\n" + HOST + HOST + b"\r\n",
    "a whole address": line(b"GET http://x/ HTTP/1.1"),
    "an authority": line(b"CONNECT x:443 HTTP/1.1"),
    "CONNECT with a path": line(b"CONNECT / HTTP/1.1"),
    "a path without a slash": line(b"GET a HTTP/1.1"),
    "a star": line(b"GET * HTTP/1.1"),
    "a fragment": line(b"GET /a#b HTTP/1.1"),
    "no target": line(b"GET HTTP/1.1"),
    "an empty target": line(b"GET  HTTP/1.1"),
    "two blanks": line(b"GET  / HTTP/1.1"),
    "a tab": line(b"GET\t/ HTTP/1.1"),
    "a blank at the end": line(b"GET / HTTP/1.1 "),
    "a blank at the beginning": line(b" GET / HTTP/1.1"),
    "a blank in the target": line(b"GET /a b HTTP/1.1"),
    "no ASCII in the target": line(b"GET /\xc3\xa9 HTTP/1.1"),
    "a method in small letters": line(b"get / HTTP/1.1"),
    "a method that is no token": line(b"G@T / HTTP/1.1"),
    "no version": line(b"GET /"),
    "version 0.9": line(b"GET / HTTP/0.9"),
    "version 1.2": line(b"GET / HTTP/1.2"),
    "version 2.0": line(b"GET / HTTP/2.0"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\n",
    "version 1.10": line(b"GET / HTTP/1.10"),
    "a version in small letters": line(b"GET / http/1.1"),
    "another protocol": line(b"GET / RTSP/1.0"),
    "no size of a chunk": chunks(b"\r\nhello\r\n0\r\n\r\n"),
    "a signed size": chunks(b"+5\r\nhello\r\n0\r\n\r\n"),
    "a size with 0x": chunks(b"0x5\r\nhello\r\n0\r\n\r\n"),
    "a size with a blank before it": chunks(b" 5\r\nhello\r\n0\r\n\r\n"),
    "a size with a blank after it": chunks(b"5 \r\nhello\r\n0\r\n\r\n"),
    "a size with an underscore": chunks(b"0_5\r\nhello\r\n0\r\n\r\n"),
    "a size beyond all bounds": chunks(b"fffffffffffffffff\r\nhello"),
    "two lengths of an odd method": b"BREW" + headers(b"Content-Length: 5\r\nContent-Length: 5", b"hello")[4:],
    "length and chunks of an odd method": b"X" + headers(b"Content-Length: 5\r\n" + CHUNKED[:-2], b"0\r\n\r\n")[4:],
    "a chunk that is too long": chunks(b"4\r\nhello\r\n0\r\n\r\n"),
    "a bare LF after a size": chunks(b"5\nhello\r\n0\r\n\r\n"),
    "a bare LF after a chunk": chunks(b"5\r\nhello\n0\r\n\r\n"),
    "a bare CR in an extension": chunks(b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
    "a long extension": chunks(b"5;" + b"a" * 300 + b"\r\nhello\r\n0\r\n\r\n"),
    "many extensions": chunks((b"1;" + b"a" * 200 + b"\r\nx\r\n") * 30 + b"0\r\n\r\n"),
    "a malformed trailer": chunks(b"0\r\nnonsense\r\n\r\n"),
    "a folded trailer": chunks(b"0\r\nA: b\r\n c\r\n\r\n"),
    "long trailers": chunks(b"0\r\n" + b"A: bbbbbbbbbbbbbbbbbbbb\r\n" * 200 + b"\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_or_ambiguous_request_is_rejected(name: str) -> None:
    with pytest.raises(RequestRejected) as rejection:
        parse(MALFORMED[name])
    assert rejection.value.status in (400, 431)


def test_too_many_headers_are_rejected() -> None:
    assert len(parse(headers(b"\r\n".join([b"A: b"] * 99)))[3]) == 100
    with pytest.raises(RequestRejected) as rejection:
        parse(headers(b"\r\n".join([b"A: b"] * 100)))
    assert rejection.value.status == 431


KEYS = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize(
    ("more", "websocket"),
    [
        (b"Connection: Upgrade\r\nUpgrade: websocket\r\n", True),
        (b"Connection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\n", True),
        (b"Connection: upgrade\r\nConnection: keep-alive\r\nUpgrade: websocket\r\n", True),
        (b"Upgrade: websocket\r\n", False),
        (b"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", False),
        (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n", False),
    ],
)
def test_websocket_handshake_is_the_only_upgrade(more: bytes, websocket: bool) -> None:
    head = read_head(line(b"GET / HTTP/1.1")[:-2] + more + KEYS + b"\r\n", LIMITS.max_headers)
    assert head.websocket is websocket
    assert (b"upgrade" in dict(head.headers)) is websocket


@pytest.mark.parametrize("more", [b"Upgrade: websocket\r\n", b"Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n"])
def test_unsupported_upgrade_is_a_plain_request(more: bytes) -> None:
    assert parse(line(b"GET / HTTP/1.1")[:-2] + more + b"\r\n")[0] == b"GET"


PIECES = [
    b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b";", b",", b"\x00", b"\x0b", b"\x7f", b"\x80", b"\xff", b"0", b"5", b"a",
    b"Host: x\r\n", CHUNKED, b"Content-Length: 5\r\n", b"Connection: close\r\n", b"chunked", b"/", b"?", b"#", b"%",
    b"HTTP/1.1", b"\r\n\r\n", b"0\r\n\r\n", b"+", b"-", b'"', b"GET / HTTP/1.1\r\n", b"Expect: 100-continue\r\n",
]  # fmt: skip


def test_randomly_changed_request_is_rejected_or_means_the_same_to_h11() -> None:
    chance = random.Random(7)
    accepted = rejected = 0
    for _ in range(REQUESTS):
        raw = bytearray(chance.choice(WELL_FORMED))
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            position = chance.randrange(len(raw) + 1)
            raw[position : position + chance.choice((0, 0, 1, 2, 8))] = chance.choice((*PIECES, b""))
        try:
            request = parse(bytes(raw))
        except RequestRejected:
            rejected += 1
            continue
        assert request == parse_with_h11(bytes(raw)), bytes(raw)
        accepted += 1
    assert accepted > REQUESTS / 10
    assert rejected > REQUESTS / 10


def test_body_can_arrive_in_any_pieces() -> None:
    chance = random.Random(8)
    for raw in WELL_FORMED:
        end = raw.find(END) + len(END)
        head = read_head(raw[:end], 100)
        if not head.length:
            continue
        expected = parse(raw)
        for _ in range(50):
            body = request_body(head.length, LIMITS)
            assert body is not None
            received, unsent, decoded = b"", raw[end:], b""
            while not body.done:
                size = chance.randint(1, 4)
                received, unsent = received + unsent[:size], unsent[size:]
                data, received = body.feed(received)
                decoded += data
            assert (decoded, received + unsent) == expected[4:]


def test_body_above_the_limit_is_rejected() -> None:
    limits = ServerLimits(max_body_bytes=10)
    for length, data in ((11, b"a" * 11), (-1, b"b\r\n" + b"a" * 11 + b"\r\n0\r\n\r\n")):
        body = request_body(length, limits)
        assert body is not None
        with pytest.raises(RequestRejected) as rejection:
            body.feed(data)
        assert rejection.value.status == 413
