"""The head of a request: read by llhttp, and by rules of our own where llhttp takes more than one meaning.

llhttp reads no bodies: httptools does not tell where a message ended, and the next one begins there.
"""

import re
from typing import NamedTuple

import httptools

from sso.serve.http1.rejections import RequestRejected

Header = tuple[bytes, bytes]
END = b"\r\n\r\n"

CHUNKED = -1  # as the length of a body

# Targets are paths: who sends a whole address, an authority or a fragment takes us for somebody else.
_LINE = re.compile(rb"([A-Z][A-Z-]*) (?:(/[!-\"$->@-~]*)(?:\?([!-\"$-~]*))?|\*) HTTP/1\.([01])\r\n")
_DIGITS = re.compile(rb"[0-9]{1,18}")
_FOLDED = re.compile(rb"\r\n[ \t]")
_KEY, _VERSION = b"sec-websocket-key", b"sec-websocket-version"
_WEBSOCKET_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")  # 16 bytes
_TELLING = frozenset({
    b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"expect", _KEY, _VERSION,
})  # fmt: skip
_ONCE = frozenset({b"host", b"content-length", b"transfer-encoding"})
_OF_UPGRADES = frozenset({b"upgrade", b"http2-settings"})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_VERSIONS = {b"0": "1.0", b"1": "1.1"}

_MAX_NAMES, _MAX_NAME = 256, 64
MAX_PATH = 4096  # paths are decoded before anything is known of the sender
_names: dict[bytes, bytes] = {}


class RequestHead(NamedTuple):
    method: str
    path: bytes
    query: bytes
    version: str
    headers: list[Header]
    length: int  # of the body, or CHUNKED
    keep_alive: bool
    expects_continue: bool
    websocket: bool  # a valid opening handshake


def head_end(data: bytes, searched: int, most: int) -> int:
    """Returns where the head at the beginning of ``data`` ends, or -1 if the rest of it has to come.

    ``searched`` bytes are known to hold no end. Raises Refused for what is too long or cannot become a head.
    """
    end = data.find(END, max(0, searched - len(END) + 1))
    if end < 0:
        judge_beginning(data, most)
        return -1
    end += len(END)
    if end > most:
        raise too_long(data[:end])
    return end


def judge_beginning(raw: bytes, most: int) -> None:
    """Refuse at once what cannot become a head, rather than wait for its end."""
    if len(raw) > most:
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
    """Parses a head; ``raw`` ends with its first empty line. Raises Refused."""
    line = _LINE.match(raw)
    if line is None:
        raise RequestRejected(400, "the request line is malformed")
    ends = raw.count(b"\r\n")
    if raw.count(b"\n") != ends or raw.count(b"\r") != ends:
        raise RequestRejected(400, "a line does not end with CR LF")
    if ends - 2 > max_headers:  # judged before they are parsed; the two others end the request line and the head
        raise RequestRejected(431, "there are too many headers")
    headers = _parsed(raw)
    return _understood(line, headers)


def _parsed(raw: bytes) -> list[Header]:
    collected = _Collected()
    try:
        httptools.HttpRequestParser(collected).feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # whether there is one is judged elsewhere
    except httptools.HttpParserInvalidMethodError:
        # Well-formed, but llhttp has a list of methods. It is for the application to refuse this one.
        return _parsed(b"GET" + raw[raw.index(b" ") :])
    except httptools.HttpParserError:
        raise RequestRejected(400, "the request is malformed") from None
    if _FOLDED.search(raw):
        raise RequestRejected(400, "a header is folded")
    return collected.headers


class _Collected:
    __slots__ = ("headers",)

    def __init__(self) -> None:
        self.headers: list[Header] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((_names.get(name) or _lower(name), value.rstrip(b" \t")))


def _lower(name: bytes) -> bytes:
    """One object for all that hold a request with it, while there are not too many names."""
    lower = name.lower()
    if len(_names) < _MAX_NAMES and len(name) <= _MAX_NAME:
        lower = _names[name] = _names.setdefault(lower, lower)
    return lower


def _understood(line: re.Match[bytes], headers: list[Header]) -> RequestHead:
    method, path, query, minor = line.groups()
    told: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _TELLING:
            if name in _ONCE and name in told:
                raise RequestRejected(400, f"there is more than one {name.decode()}")
            told[name] = told[name] + b"," + value if name in told else value
    if method == b"CONNECT" or (path is None and method != b"OPTIONS"):
        raise RequestRejected(400, "the request line is malformed")
    if path is not None and len(path) > MAX_PATH:
        raise RequestRejected(414, "the path is too long")
    if minor == b"1" and b"host" not in told:
        raise RequestRejected(400, "there is no host")
    length = _length(told, minor) if told.keys() & _FRAMING else 0
    connection = told.get(b"connection", b"").lower()
    if minor == b"1":
        keep_alive = not connection or b"close" not in _tokens(connection)
    else:
        keep_alive = b"keep-alive" in _tokens(connection)
    websocket = False
    if b"upgrade" in told:
        websocket = minor == b"1" and length == 0 and _is_handshake(method, told, connection)
        # After a handshake that failed, a proxy may take the connection for a tunnel.
        keep_alive = keep_alive and b"websocket" not in told[b"upgrade"].lower()
        if not websocket:  # no other protocol is offered (RFC 9110 section 7.8)
            headers = [header for header in headers if header[0] not in _OF_UPGRADES]
    expects = b"expect" in told and told[b"expect"].lower() == b"100-continue" and minor == b"1"
    return RequestHead(
        method.decode(), path or b"*", query or b"", _VERSIONS[minor], headers, length, keep_alive, expects, websocket
    )


def _length(told: dict[bytes, bytes], minor: bytes) -> int:
    """Two ways to tell where a body ends are two requests in the eyes of two readers."""
    if b"transfer-encoding" not in told:
        length = told[b"content-length"]
        if not _DIGITS.fullmatch(length):
            raise RequestRejected(400, "content-length is no number")
        return int(length)
    if b"content-length" in told:
        raise RequestRejected(400, "there are both content-length and transfer-encoding")
    if told[b"transfer-encoding"].lower() != b"chunked" or minor == b"0":
        raise RequestRejected(400, "that transfer-encoding is not understood")
    return CHUNKED


def _is_handshake(method: bytes, told: dict[bytes, bytes], connection: bytes) -> bool:
    """Whether the request opens a WebSocket (RFC 6455 section 4.2.1). Refuses one that is malformed."""
    if method != b"GET" or told[b"upgrade"].lower() != b"websocket" or b"upgrade" not in _tokens(connection):
        return False
    if told.get(_VERSION) != b"13":
        raise RequestRejected(
            426, "Sec-WebSocket-Version must be 13", ((_VERSION.decode(), "13"), ("upgrade", "websocket"))
        )
    if not _WEBSOCKET_KEY.fullmatch(told.get(_KEY, b"")):
        raise RequestRejected(400, "Sec-WebSocket-Key must be 16 bytes in base64")
    return True


def _tokens(value: bytes) -> list[bytes]:
    return [token.strip(b" \t") for token in value.split(b",")]
