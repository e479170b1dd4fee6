"""Plays a script on a real socket. What a game does otherwise than the script says is a violation."""

import json
import socket
import struct
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import h11
import trio

from sso.cli.play.scripted.script import Script, Step
from sso.cli.play.scripted.web_socket import play_socket
from sso.cli.play.signing import is_signed

EARLY_S = 0.1  # by which timers of games may be inexact
MAX_BODY = 1 << 20


class ScriptedService:
    """Answers requests in the order of the script. When its first request comes again at the end, it begins anew."""

    def __init__(self, script: Script, report: Callable[[str], None] = lambda _text: None) -> None:
        self._steps = [step for step in script.requests for _ in range(step.times)]
        self._sockets = script.sockets
        self._report = report
        self.base_url = ""
        self.begin()

    def begin(self) -> None:
        self._position = 0
        self._opened_sockets = 0
        self._key = ""
        self._last_answer = float("-inf")
        self.violations: list[str] = []

    @property
    def is_over(self) -> bool:
        return self._position == len(self._steps)

    @property
    def next_request(self) -> str:
        return "" if self.is_over else self._steps[self._position].path

    async def serve(
        self, port: int = 0, host: str = "127.0.0.1", *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
    ) -> None:
        listeners = await trio.open_tcp_listeners(port, host=host)
        name = f"[{host}]" if ":" in host else host
        self.base_url = f"http://{name}:{listeners[0].socket.getsockname()[1]}"
        task_status.started(self.base_url)
        await trio.serve_listeners(self._converse, listeners)

    async def _converse(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        try:
            while connection.our_state is h11.IDLE:
                request, body = await _read_request(stream, connection)
                if request is None:
                    return
                if dict(request.headers).get(b"upgrade", b"").lower() == b"websocket":
                    await self._play_socket(stream, request)
                    return
                if not await self._answer(stream, connection, request, body):
                    return
                if connection.our_state is connection.their_state is h11.DONE:
                    connection.start_next_cycle()
        except (h11.RemoteProtocolError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the game has gone
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(1):
                await stream.aclose()

    async def _answer(
        self, stream: trio.SocketStream, connection: h11.Connection, request: h11.Request, body: bytes
    ) -> bool:
        """Plays the next step. Returns whether the connection goes on."""
        step = self._next_step(request, body)
        if step is None:
            await _send(stream, connection, 500, {}, {"status": "ERROR", "error": self.violations[-1]})
            return True
        await trio.sleep(step.hold_s)
        self._last_answer = trio.current_time()
        if step.stream:
            await _send_stream(stream, connection, step)
            self._last_answer = trio.current_time()
        if step.fault in ("close", "reset", "leave"):
            await _break(stream, step.fault)
            return False
        if step.stream:
            await stream.send_all(connection.send(h11.EndOfMessage()) or b"")
            return True
        answer = json.loads(json.dumps(step.answer).replace("{base_url}", self.base_url))
        headers = {name: value.replace("{base_url}", self.base_url) for name, value in step.headers.items()}
        await _send(stream, connection, step.status, headers, answer, half=step.fault == "half")
        self._last_answer = trio.current_time()
        return step.fault != "half"

    def _next_step(self, request: h11.Request, body: bytes) -> Step | None:
        target = urlsplit(request.target.decode())
        path = f"{request.method.decode()} {target.path}"
        if self.is_over and self._steps and path == self._steps[0].path:
            self.begin()
        expected = self.next_request
        self._report(path)
        if path != expected:
            self._violation(f"{path} came, but {expected or 'nothing more'} was expected")
            return None
        step = self._steps[self._position]
        self._position += 1
        fields = _fields(body)
        self._key = fields.get("public_key") or self._key
        headers = {name.decode().lower(): value.decode() for name, value in request.headers}
        early = step.not_before_s - EARLY_S - (trio.current_time() - self._last_answer)
        if step.not_before_s and early > 0:
            self._violation(f"{path} came {early:.1f} s too early")
        self._compare(path, "field", step.fields, fields)
        self._compare(path, "parameter", step.query, dict(parse_qsl(target.query)))
        self._compare(path, "header", {name.lower(): value for name, value in step.request_headers.items()}, headers)
        for name in step.without:
            if name in fields:
                self._violation(f"{path} has the field {name}")
        if step.signed and not is_signed(self._key, body, headers.get("request-sign", "")):
            self._violation(f"{path} is not signed by the key of the game")
        return step

    def _compare(self, path: str, kind: str, expected: dict[str, Any], found: dict[str, Any]) -> None:
        """A value that ends with * may go on with any text."""
        for name, value in expected.items():
            given = found.get(name)
            begin = value[:-1] if isinstance(value, str) and value.endswith("*") else None
            if given != value and not (begin is not None and isinstance(given, str) and given.startswith(begin)):
                self._violation(f"{path}: {kind} {name} is {given!r}, but {value!r} was expected")

    def _violation(self, text: str) -> None:
        self.violations.append(text)
        self._report(f"unexpected: {text}")

    async def _play_socket(self, stream: trio.SocketStream, request: h11.Request) -> None:
        number = self._opened_sockets
        self._opened_sockets += 1
        self._report(f"WebSocket {urlsplit(request.target.decode()).path}")
        if number >= len(self._sockets):
            self._violation("a WebSocket was opened, but none was expected" if not number else "one WebSocket too many")
            await _break(stream, "close")
            return
        if not await play_socket(stream, request, self._sockets[number]):
            await _break(stream, "reset")


def _fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError:
        return dict(parse_qsl(body.decode(errors="replace")))
    return fields if isinstance(fields, dict) else {}


async def _read_request(stream: trio.SocketStream, connection: h11.Connection) -> tuple[h11.Request | None, bytes]:
    request, body = None, bytearray()
    while True:
        event = connection.next_event()
        match event:
            case h11.NEED_DATA:
                if connection.they_are_waiting_for_100_continue:
                    await stream.send_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                connection.receive_data(await stream.receive_some())
            case h11.Request():
                request = event
                if dict(event.headers).get(b"upgrade", b"").lower() == b"websocket":
                    return request, b""
            case h11.Data():
                body += event.data
                if len(body) > MAX_BODY:
                    return None, b""
            case h11.EndOfMessage():
                return request, bytes(body)
            case _:  # the connection is closed, or speaks another protocol
                return None, b""


async def _send(
    stream: trio.SocketStream,
    connection: h11.Connection,
    status: int,
    headers: dict[str, str],
    answer: dict[str, Any] | str,
    *,
    half: bool = False,
) -> None:
    content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
    kind = "text/html" if isinstance(answer, str) else "application/json"
    fields = {"Content-Type": kind, "Content-Length": str(len(content)), **headers}
    response = h11.Response(status_code=status, headers=list(fields.items()))
    await stream.send_all(connection.send(response) or b"")
    if half:
        await stream.send_all(content[: len(content) // 2])
        return
    await stream.send_all(
        (connection.send(h11.Data(data=content)) or b"") + (connection.send(h11.EndOfMessage()) or b"")
    )


async def _send_stream(stream: trio.SocketStream, connection: h11.Connection, step: Step) -> None:
    response = h11.Response(status_code=step.status, headers=list(step.headers.items()))
    await stream.send_all(connection.send(response) or b"")
    for part in step.stream:
        await trio.sleep(part.wait_s)
        await stream.send_all(connection.send(h11.Data(data=part.send.encode())) or b"")


async def _break(stream: trio.SocketStream, fault: str) -> None:
    """Ends a connection without an answer: "leave" never says so, as when the network is gone."""
    if fault == "leave":
        await trio.sleep_forever()
    if fault == "reset":
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.socket.close()
