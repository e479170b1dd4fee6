"""Protocol errors of clients are logged briefly: at level debug, rate-limited, without the id of another request."""

from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from sso.log import current_request_id
from sso.serve.rate_limited_log import RateLimitedLog
from tests.kit.raw_http import RunningServer, reply, serving

KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
UPGRADE = b"GET /s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + KEY + b"\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
CLOSE_FRAME = b"\x88\x80\x00\x00\x00\x00"
PING_FRAME = b"\x89\x80\x00\x00\x00\x00"

VIOLATIONS = {
    "request after a handshake": UPGRADE + GET,
    "request before a handshake": GET + UPGRADE + GET,
    "two handshakes": UPGRADE + UPGRADE,
    "frames after the closing one": UPGRADE + CLOSE_FRAME + PING_FRAME * 20,
    "frame with reserved bits": UPGRADE + b"\xf1\x80\x00\x00\x00\x00",
    "frame without a mask": UPGRADE + b"\x81\x02hi",
    "text that is not UTF-8": UPGRADE + b"\x81\x82\x00\x00\x00\x00\xff\xff",
    "fragment without a beginning": UPGRADE + b"\x80\x82\x00\x00\x00\x00hi",
    "control frame that is too long": UPGRADE + b"\x89\xfe\x01\x00\x00\x00\x00\x00" + b"a" * 256,
    "handshake that is malformed": UPGRADE.replace(b"13", b"14") + GET,
    "no request": b"\x16\x03\x01nonsense\r\n\r\n",
    "bad chunk": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "response not awaited": GET * 50,
}


async def talk(scope: Any, receive: Any, send: Any) -> None:
    """Reads the whole request or all frames; a request sets the request id of its task."""
    if scope["type"] == "http":
        current_request_id.set("of-a-request")
        while (await receive()).get("more_body"):
            pass
        await reply(send, b"")
        return
    await receive()
    await trio.lowlevel.checkpoint()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def violate(server: RunningServer, data: bytes) -> None:
    async with await server.open() as connection:
        await connection.send(data)
        await connection.stream.send_eof()
        with trio.fail_after(60):
            while await connection._receive():
                pass


@pytest.mark.parametrize("name", VIOLATIONS)
async def test_repeated_protocol_error_is_logged_once_at_level_debug(name: str) -> None:
    with capture_logs() as lines:
        async with serving(talk) as server:
            for _ in range(5):
                await violate(server, VIOLATIONS[name])
    assert [line for line in lines if line["log_level"] != "debug"] == []
    assert len(lines) <= 1
    assert all("exc_info" not in line for line in lines)


async def test_log_line_of_a_connection_has_no_id_of_an_earlier_request() -> None:
    ids: list[str | None] = []

    def note(_: Any, __: str, event: Any) -> Any:
        ids.append(current_request_id.get())
        return event

    with capture_logs(processors=[note]) as lines:
        async with serving(talk) as server:
            await violate(server, GET + b"nonsense\r\n\r\n")
    assert (len(lines), ids) == (1, [None])


def test_rate_limited_log_counts_suppressed_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, dict[str, object]]] = []
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)

    def write(event: str, **fields: object) -> None:
        lines.append((event, fields))

    log = RateLimitedLog(interval_s=10)
    for number in range(3):
        log(write, "one", number=number)
        log(write, "two")
    now = 110.0
    log(write, "one", number=3)
    assert lines == [("one", {"number": 0}), ("two", {}), ("one", {"number": 3, "suppressed": 2})]
