"""Parsers of what arrives with a request: heads, bodies, frames, forms, cookies and addresses."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote_to_bytes

import orjson
from werkzeug.sansio.http import parse_cookie

from sso.accounts.known_devices import _split_cookie
from sso.core.encryption import EncryptionError, Keyring, MasterKey
from sso.core.language import first_supported, parse_accept_language
from sso.core.net import contains, parse_network, parse_networks, private_networks
from sso.serve.http1.body import request_body
from sso.serve.http1.head import Header, RequestHead, head_end, read_head
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.websocket import WebSocketExchange, WebSocketState
from sso.serve.server_limits import ServerLimits
from sso.web.allowed_hosts import AllowedHosts
from sso.web.body import MAX_BYTES, InvalidBody, parse_body
from sso.web.client_address import TrustedProxies, UnknownAddress, resolve_client_address
from sso.web.cookies import is_secret
from sso.web.multipart import parse_multipart
from sso.web.request_rules import RequestRules
from tests.fuzz.target import Target, promise

LIMITS = ServerLimits()
KEYRING = Keyring([MasterKey(bytes(32))])
RULES = RequestRules(AllowedHosts(["id.example"]))
PROXIES = {
    header: TrustedProxies((parse_network("10.0.0.0/8"), parse_network("fd00::/8")), header)
    for header in ("x-forwarded-for", "forwarded")
}


def http_request(data: bytes) -> None:
    """The head, then the body, in two pieces as well as in one."""
    end = head_end(data, 0, LIMITS.max_head_bytes)
    if end < 0:
        return
    head = read_head(data[:end], LIMITS.max_headers)
    promise(all(b"\n" not in name + value and b"\0" not in value for name, value in head.headers), "a header has lines")
    promise(head.path.startswith(b"/") or head.path == b"*", "the path is no path")
    scope = {"headers": head.headers, "query_string": head.query, "path": head.path.decode("latin1")}
    RULES.violation(scope)
    whole = _read_body(head.length, [data[end:]])
    middle = end + (len(data) - end) // 2
    promise(whole == _read_body(head.length, [data[end:middle], data[middle:]]), "pieces change the body")


def _read_body(length: int, pieces: list[bytes]) -> tuple[bytes, bytes, bool]:
    body, read, unconsumed = request_body(length, LIMITS), b"", b""
    for piece in pieces:
        unconsumed += piece
        while body is not None and not body.done and unconsumed:
            before = len(unconsumed)
            decoded, unconsumed = body.feed(unconsumed)
            read += decoded
            if len(unconsumed) == before:
                break
    return read, unconsumed, body is None or body.done


class _Socket:
    def send(self, data: bytes) -> int:
        return len(data)


HEAD = RequestHead("GET", b"/", b"", "1.1", list[Header](), 0, True, False, True)


def websocket(data: bytes) -> None:
    """The frames of a client, in two pieces."""
    connection: Any = SimpleNamespace(sock=_Socket(), client_disconnected=lambda: None)
    exchange = WebSocketExchange(connection, HEAD)
    exchange._state = WebSocketState.OPEN
    middle = len(data) // 2
    for piece in (data[:middle], data[middle:]):
        if piece and exchange._state is WebSocketState.OPEN and not exchange._limit_exceeded:
            exchange._parse(piece)
    for message in exchange._messages:
        promise(message["type"] in ("websocket.receive", "websocket.disconnect"), "an unknown message")


def json_body(data: bytes) -> None:
    """What is accepted comes back unchanged, and can be written by another library."""
    fields = parse_body(data, "application/json").fields
    promise(orjson.loads(orjson.dumps(fields)) == fields, "another library reads it differently")
    promise("\0" not in "".join(_texts(fields)), "there is a NUL")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)


def form(data: bytes) -> None:
    """Another decoder agrees."""
    fields = parse_body(data, "application/x-www-form-urlencoded").fields
    promise("\0" not in "".join(_texts(fields)), "there is a NUL")
    for pair in data.split(b"&") if len(data) < 4096 else ():
        name, value = (unquote_to_bytes(part.replace(b"+", b" ")).decode() for part in pair.partition(b"=")[::2])
        promise(not pair or value in (fields[name], *_texts(fields[name])), "another library reads it differently")


def multipart(data: bytes) -> None:
    """The first line is the boundary."""
    boundary, _, raw = data.partition(b"\n")
    text = boundary.decode("latin1")
    if text.isascii() and 0 < len(text) <= 70:
        for name, value in parse_multipart(raw, text).items():
            orjson.dumps({name: value})


def cookies(data: bytes) -> None:
    if RULES.violation({"headers": [(b"cookie", data)], "query_string": b"", "path": "/healthz"}) is not None:
        return
    for value in parse_cookie(data.decode("latin1")).values():
        is_secret(value)
        _split_cookie(value[:1024])
        try:
            KEYRING.decrypt("cookie", value[:2048])
        except EncryptionError:
            continue
        promise(False, "a value is accepted that was not encrypted")


def addresses(data: bytes) -> None:
    """Networks, lists of them, and the headers of proxies."""
    text = data.decode("latin1")
    line, _, rest = text.partition("\n")
    for header, proxies in PROXIES.items():
        lines = [line, rest] if rest else [line]
        try:
            address = resolve_client_address("10.0.0.1", lambda _, lines=lines: lines, proxies)  # type: ignore[misc]
            promise(parse_network(str(address)).num_addresses == 1, "the client is no address")
        except UnknownAddress:
            promise(bool(text), f"an empty {header} is refused")
    first_supported(parse_accept_language(line))
    private_networks(line.split(","))
    for network in parse_networks(line):
        promise(parse_network(str(network)) == network, "a network is read differently when it is written")
        promise(contains([network], network.network_address), "a network does not contain its first address")


_HTTP_WORDS = (
    b"GET / HTTP/1.1\r\n",
    b"POST /a?b HTTP/1.1\r\n",
    b"Host: id.example\r\n",
    b"Content-Length: 3\r\n",
    b"\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Upgrade: websocket\r\n",
    b"Connection: upgrade\r\n",
    b"Cookie: a=b; c\r\n",
    b"Sec-WebSocket-Version: 13\r\n",
    b"Expect: 100-continue\r\n",
    b"0\r\n\r\n",
    b"5\r\nabcde\r\n",
    b"ffffffff\r\n",
    b";x=y",
)
_JSON_WORDS = (
    b'{"a":',
    b"[",
    b"]",
    b"}",
    b",",
    b'"',
    b":",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"NaN",
    b"Infinity",
    b'{"":[]}',
    b"\\ud800",
    b"\\udc00",
    b"\\uFFFF",
    b"\\",
    b"1.5E-9",
    b"9223372036854775808",
    b'"\\"',
    b"\xf4\x8f\xbf\xbf",
)
_MULTIPART_WORDS = (
    b"--b\r\n",
    b"--b--\r\n",
    b'Content-Disposition: form-data; name="a"\r\n\r\n',
    b'; filename="x"',
    b"name*=utf-8''%ff",
    b"Content-Type: text/plain; charset=utf-16\r\n",
    b"Content-Transfer-Encoding: base64\r\n",
    b"\r\n--b",
    b'name="',
)

TARGETS = (
    Target(http_request, (RequestRejected,), _HTTP_WORDS, 48 * 1024),
    Target(
        websocket,
        (),
        (b"\x81\x80\0\0\0\0", b"\x88\x82\0\0\0\0", b"\x89\xfe\0\x80", b"\x01\xff", b"\x00\x80"),
        64 * 1024,
    ),
    Target(json_body, (InvalidBody,), _JSON_WORDS, MAX_BYTES),
    Target(form, (InvalidBody,), (b"&", b"=", b"%", b"+", b"a[]=", b"%ed%a0%80", b"%EF%BF%BF", b"&a=%41"), MAX_BYTES),
    Target(multipart, (InvalidBody,), _MULTIPART_WORDS, MAX_BYTES),
    Target(cookies, (), (b"; ", b"=", b'"', b"\\073", b"sso_session=", b"v1.", b"~", b".1~", b"__Host-"), 32 * 1024),
    Target(
        addresses,
        (ValueError,),
        (b",", b"/", b"::", b"::ffff:10.0.0.1", b"10.0.0.1", b'for="[', b'"', b";q=0.1", b"%eth0", b"/0", b"/129"),
        4096,
    ),
)
