"""Parses request heads with llhttp, and with stricter rules of our own where llhttp accepts ambiguous requests.

llhttp does not parse the bodies: httptools does not report where a message ended, and the next request begins there.
"""

import re
from typing import NamedTuple

import httptools

from sso.serve.http1.rejections import RequestRejected

Header = tuple[bytes, bytes]
END = b"\r\n\r\n"

CHUNKED = -1  # as the length of a body

# Only paths are accepted as targets: absolute URLs and authorities are for proxies, and fragments are never sent.
_REQUEST_LINE = re.compile(rb"([A-Z][A-Z-]*) (?:(/[!-\"$->@-~]*)(?:\?([!-\"$-~]*))?|\*) HTTP/1\.([01])\r\n")
_DIGITS = re.compile(rb"[0-9]{1,18}")
_FOLDED = re.compile(rb"\r\n[ \t]")
_KEY, _VERSION = b"sec-websocket-key", b"sec-websocket-version"
_WEBSOCKET_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")  # 16 bytes
_INTERPRETED = frozenset({
    b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"expect", _KEY, _VERSION,
})  # fmt: skip
_SINGLE = frozenset({b"host", b"content-length", b"transfer-encoding"})
_UPGRADE_HEADERS = frozenset({b"upgrade", b"http2-settings"})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_VERSIONS = {b"0": "1.0", b"1": "1.1"}

_MAX_CACHED_NAMES, _MAX_CACHED_NAME_LENGTH = 256, 64
MAX_PATH = 4096  # paths are decoded before the client is authenticated
_names: dict[bytes, bytes] = {}  # lower-case names by the names that clients sent


class RequestHead(NamedTuple):
    method: str
    path: bytes
    query: bytes
    version: str
    headers: list[Header]
    length: int  # how long the body is, or CHUNKED
    keep_alive: bool
    expects_continue: bool
    websocket: bool  # the request is a valid opening handshake


def head_end(data: bytes, searched: int, max_bytes: int) -> int:
    """Returns where the head at the beginning of ``data`` ends, or -1 if it is not complete yet.

    The first ``searched`` bytes are known to contain no end. Raises RequestRejected if the head is too long, or if the
    bytes cannot become a valid head.
    """
    end = data.find(END, max(0, searched - len(END) + 1))
    if end < 0:
        check_incomplete_head(data, max_bytes)
        return -1
    end += len(END)
    if end > max_bytes:
        raise too_long(data[:end])
    return end


def check_incomplete_head(raw: bytes, max_bytes: int) -> None:
    """Rejects bytes that cannot become a valid head at once, rather than waiting for its end."""
    if len(raw) > max_bytes:
        raise too_long(raw)
    if not raw[:1].isupper() and raw:
        raise RequestRejected(400, "the request line is malformed")
    if raw.count(b"\n") != raw.count(b"\r\n"):
        raise RequestRejected(400, "a line does not end with CR LF")


def too_long(raw: bytes) -> RequestRejected:
    if b"\r\n" in raw.rstrip():
        return RequestRejected(431, "the headers are too long")
    return RequestRejected(414, "the request line is too long")


def read_head(raw: bytes, max_headers: int) -> RequestHead:
    """Parses a head; ``raw`` ends with its empty line. Raises RequestRejected."""
    line = _REQUEST_LINE.match(raw)
    if line is None:
        raise RequestRejected(400, "the request line is malformed")
    line_ends = raw.count(b"\r\n")
    if raw.count(b"\n") != line_ends or raw.count(b"\r") != line_ends:
        raise RequestRejected(400, "a line does not end with CR LF")
    if line_ends - 2 > max_headers:  # counted before parsing; the two others end the request line and the head
        raise RequestRejected(431, f"expected at most {max_headers} headers")
    headers = _parse_headers(raw)
    return _interpret(line, headers)


def _parse_headers(raw: bytes) -> list[Header]:
    collector = _HeaderCollector()
    try:
        httptools.HttpRequestParser(collector).feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # `_interpret` decides whether the request is an upgrade
    except httptools.HttpParserInvalidMethodError:
        # llhttp knows a fixed list of methods. The application answers 405 to a method that it does not know.
        return _parse_headers(b"GET" + raw[raw.index(b" ") :])
    except httptools.HttpParserError:
        raise RequestRejected(400, "the request is malformed") from None
    if _FOLDED.search(raw):
        raise RequestRejected(400, "a header is folded")
    return collector.headers


class _HeaderCollector:
    __slots__ = ("headers",)

    def __init__(self) -> None:
        self.headers: list[Header] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((_names.get(name) or _lower(name), value.rstrip(b" \t")))


def _lower(name: bytes) -> bytes:
    """Returns the name in lower case: the same object for all requests, as long as the cache is not full."""
    lower = name.lower()
    if len(_names) < _MAX_CACHED_NAMES and len(name) <= _MAX_CACHED_NAME_LENGTH:
        lower = _names[name] = _names.setdefault(lower, lower)
    return lower


def _interpret(line: re.Match[bytes], headers: list[Header]) -> RequestHead:
    method, path, query, minor = line.groups()
    values: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _INTERPRETED:
            if name in _SINGLE and name in values:
                raise RequestRejected(400, f"{name.decode()}: expected one header, got several")
            values[name] = values[name] + b"," + value if name in values else value
    if method == b"CONNECT" or (path is None and method != b"OPTIONS"):
        raise RequestRejected(400, "the request line is malformed")
    if path is not None and len(path) > MAX_PATH:
        raise RequestRejected(414, "the path is too long")
    if minor == b"1" and b"host" not in values:
        raise RequestRejected(400, "host: expected one header, got none")
    length = _body_length(values, minor) if values.keys() & _FRAMING else 0
    connection = values.get(b"connection", b"").lower()
    if minor == b"1":
        keep_alive = not connection or b"close" not in _tokens(connection)
    else:
        keep_alive = b"keep-alive" in _tokens(connection)
    websocket = False
    if b"upgrade" in values:
        websocket = minor == b"1" and length == 0 and _is_handshake(method, values, connection)
        # After a failed handshake, a proxy may treat the connection as a tunnel.
        keep_alive = keep_alive and b"websocket" not in values[b"upgrade"].lower()
        if not websocket:  # no other protocol is offered (RFC 9110 section 7.8)
            headers = [header for header in headers if header[0] not in _UPGRADE_HEADERS]
    expects_continue = b"expect" in values and values[b"expect"].lower() == b"100-continue" and minor == b"1"
    return RequestHead(
        method=method.decode(),
        path=path or b"*",
        query=query or b"",
        version=_VERSIONS[minor],
        headers=headers,
        length=length,
        keep_alive=keep_alive,
        expects_continue=expects_continue,
        websocket=websocket,
    )


def _body_length(values: dict[bytes, bytes], minor: bytes) -> int:
    """Accepts one framing header only: with both, two readers may disagree about where the request ends."""
    if b"transfer-encoding" not in values:
        length = values[b"content-length"]
        if not _DIGITS.fullmatch(length):
            raise RequestRejected(400, "content-length: expected a decimal number")
        return int(length)
    if b"content-length" in values:
        raise RequestRejected(400, "expected content-length or transfer-encoding, got both")
    if values[b"transfer-encoding"].lower() != b"chunked" or minor == b"0":
        raise RequestRejected(400, "transfer-encoding: expected chunked, with HTTP/1.1")
    return CHUNKED


def _is_handshake(method: bytes, values: dict[bytes, bytes], connection: bytes) -> bool:
    """Returns whether the request opens a WebSocket (RFC 6455 section 4.2.1). Rejects a malformed handshake."""
    if method != b"GET" or values[b"upgrade"].lower() != b"websocket" or b"upgrade" not in _tokens(connection):
        return False
    if values.get(_VERSION) != b"13":
        raise RequestRejected(
            426, "Sec-WebSocket-Version must be 13", ((_VERSION.decode(), "13"), ("upgrade", "websocket"))
        )
    if not _WEBSOCKET_KEY.fullmatch(values.get(_KEY, b"")):
        raise RequestRejected(400, "Sec-WebSocket-Key must be 16 bytes in base64")
    return True


def _tokens(value: bytes) -> list[bytes]:
    return [token.strip(b" \t") for token in value.split(b",")]
