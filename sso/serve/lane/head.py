"""The head of a request: read by llhttp, and by rules of our own where llhttp takes more than one meaning.

llhttp reads no bodies: httptools does not tell where a message ended, and the next one begins there.
"""

import re
from typing import NamedTuple

import httptools

from sso.serve.lane.refused import Refused

Header = tuple[bytes, bytes]
END = b"\r\n\r\n"

CHUNKED = -1  # as the length of a body

# Targets are paths: who sends a whole address, an authority or a fragment takes us for somebody else.
_LINE = re.compile(rb"([A-Z][A-Z-]*) (?:(/[!-\"$->@-~]*)(?:\?([!-\"$-~]*))?|\*) HTTP/1\.([01])\r\n")
_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"
_DIGITS = re.compile(rb"[0-9]{1,18}")
_FOLDED = re.compile(rb"\r\n[ \t]")
_TELLING = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"expect"})
_ONCE = frozenset({b"host", b"content-length", b"transfer-encoding"})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_VERSIONS = {b"0": "1.0", b"1": "1.1"}

_NAMES_MOST, _NAME_MOST = 256, 64
_names: dict[bytes, bytes] = {}


class NotOurs(Exception):
    """Something other than a plain HTTP/1.x request."""


class Head(NamedTuple):
    method: str
    path: bytes
    query: bytes
    version: str
    headers: list[Header]
    length: int  # of the body, or CHUNKED
    keep_alive: bool
    expects_continue: bool


def judge_beginning(raw: bytes, most: int) -> None:
    """Refuse at once what cannot become a head, rather than wait for its end."""
    if len(raw) > most:
        raise too_long(raw)
    if not raw[:1].isupper() and raw:
        raise Refused(400, "the request line is malformed")
    if raw.count(b"\n") != raw.count(b"\r\n"):
        raise Refused(400, "a line does not end with CR LF")


def too_long(raw: bytes) -> Refused:
    if b"\r\n" in raw.rstrip():
        return Refused(431, "the headers are too long")
    return Refused(414, "the request line is too long")


def read_head(raw: bytes, headers_most: int) -> Head:
    """``raw`` ends with the first empty line. Raises Refused or NotOurs."""
    line = _LINE.match(raw)
    if line is None:
        if raw == _PREFACE:
            raise NotOurs
        raise Refused(400, "the request line is malformed")
    ends = raw.count(b"\r\n")
    if raw.count(b"\n") != ends or raw.count(b"\r") != ends:
        raise Refused(400, "a line does not end with CR LF")
    headers = _parsed(raw)
    if len(headers) > headers_most:
        raise Refused(431, "there are too many headers")
    return _understood(line, headers)


def _parsed(raw: bytes) -> list[Header]:
    collected = _Collected()
    try:
        httptools.HttpRequestParser(collected).feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # whether there is one is judged elsewhere
    except httptools.HttpParserInvalidMethodError:
        raise NotOurs from None  # well-formed, but llhttp has a list of methods
    except httptools.HttpParserError:
        raise Refused(400, "the request is malformed") from None
    if _FOLDED.search(raw):
        raise Refused(400, "a header is folded")
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
    if len(_names) < _NAMES_MOST and len(name) <= _NAME_MOST:
        lower = _names[name] = _names.setdefault(lower, lower)
    return lower


def _understood(line: re.Match[bytes], headers: list[Header]) -> Head:
    method, path, query, minor = line.groups()
    told: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _TELLING:
            if name in _ONCE and name in told:
                raise Refused(400, f"there is more than one {name.decode()}")
            told[name] = told[name] + b"," + value if name in told else value
    if method == b"CONNECT" or (path is None and method != b"OPTIONS"):
        raise Refused(400, "the request line is malformed")
    if minor == b"1" and b"host" not in told:
        raise Refused(400, "there is no host")
    length = _length(told, minor) if told.keys() & _FRAMING else 0
    connection = told.get(b"connection", b"").lower()
    if connection and b"upgrade" in told and _wants_another(method, told, connection, length):
        raise NotOurs
    if minor == b"1":
        keep_alive = not connection or b"close" not in _tokens(connection)
    else:
        keep_alive = b"keep-alive" in _tokens(connection)
    expects = b"expect" in told and told[b"expect"].lower() == b"100-continue" and minor == b"1"
    return Head(method.decode(), path or b"*", query or b"", _VERSIONS[minor], headers, length, keep_alive, expects)


def _length(told: dict[bytes, bytes], minor: bytes) -> int:
    """Two ways to tell where a body ends are two requests in the eyes of two readers."""
    if b"transfer-encoding" not in told:
        length = told[b"content-length"]
        if not _DIGITS.fullmatch(length):
            raise Refused(400, "content-length is no number")
        return int(length)
    if b"content-length" in told:
        raise Refused(400, "there are both content-length and transfer-encoding")
    if told[b"transfer-encoding"].lower() != b"chunked" or minor == b"0":
        raise Refused(400, "that transfer-encoding is not understood")
    return CHUNKED


def _wants_another(method: bytes, told: dict[bytes, bytes], connection: bytes, length: int) -> bool:
    """A protocol that we do not speak may be asked for, and is then not spoken."""
    if b"upgrade" not in _tokens(connection):
        return False
    wanted = told[b"upgrade"].lower()
    return length == 0 and ((wanted == b"websocket" and method == b"GET") or wanted == b"h2c")


def _tokens(value: bytes) -> list[bytes]:
    return [token.strip(b" \t") for token in value.split(b",")]
