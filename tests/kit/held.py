"""Many game clients at once, with held polls and WebSockets: raw connections on Trio.

Every game has its own loopback address, so that rate limits and address checks never mix two games up.
"""

import itertools
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self
from urllib.parse import urlsplit

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream
from wsproto.utilities import LocalProtocolError

from sso.db.database import Database
from tests.kit.browser import Browser
from tests.kit.open_database import open_database
from tests.kit.server import LIMIT_S, Server

GET_GSID, POLL, CLOSE, INFO = (
    f"/proxy/api/gameSession/{name}" for name in ("getGsid", "getGsidResult", "closeGsid", "info")
)
SOCKET = "/ws/gameSession/refresh/"


class ServerAddress(Protocol):
    """Anything with the address of a server."""

    base_url: str


RESPONSE_TIMEOUT_S = 150.0  # longer than any test holds a poll, so that a hanging request fails the test
_numbers = itertools.count(1)


def new_address() -> str:
    number = next(_numbers)
    return f"127.{1 + number // 60_000}.{number // 240 % 250}.{2 + number % 240}"


class Answer(NamedTuple):
    status: int  # 0: the connection broke before a response came
    data: dict[str, Any]
    headers: dict[str, str]

    @property
    def outcome(self) -> str:
        """The result of a poll in one word: the status of the body, or the HTTP status if it is not 200."""
        return str(self.data.get("status", self.status)) if self.status == 200 else str(self.status)


BROKEN = Answer(0, {}, {})


class Connection:
    """An HTTP connection. A request can be sent without waiting for its response."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._received = b""

    @classmethod
    async def open(cls, server: ServerAddress, address: str = "127.0.0.1") -> Self:
        target = urlsplit(server.base_url)
        sock = trio.socket.socket()
        # Many tests in a row would otherwise use up the source ports of an address.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        await sock.bind((address, 0))
        await sock.connect((target.hostname, target.port))
        return cls(trio.SocketStream(sock))

    @property
    def port(self) -> int:
        return int(self.stream.socket.getsockname()[1])

    async def send(
        self, path: str, body: bytes | dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        lines = {"Host": "localhost", **({"Content-Length": str(len(content))} if body is not None else {})}
        lines |= {"Content-Type": "application/json"} if isinstance(body, dict) else {}
        head = "".join(f"{name}: {value}\r\n" for name, value in (lines | (headers or {})).items())
        method = "GET" if body is None else "POST"
        await self.stream.send_all(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content)

    async def receive(self) -> Answer:
        try:
            with trio.fail_after(RESPONSE_TIMEOUT_S):
                return await self._receive()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, EOFError):
            return BROKEN

    async def _receive(self) -> Answer:
        head = await self._until(lambda got: got.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in got else 0)
        first, *lines = head.decode("latin1").rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        content = await self._until(lambda got: length if len(got) >= length else 0) if length else b""
        is_json = headers.get("content-type", "") == "application/json"
        return Answer(int(first.split()[1]), json.loads(content) if is_json else {}, headers)

    async def _until(self, complete: Callable[[bytes], int]) -> bytes:
        while not (end := complete(self._received)):
            data = await self.stream.receive_some(65536)
            if not data:
                raise EOFError
            self._received += data
        data, self._received = self._received[:end], self._received[end:]
        return data

    async def receive_some(self) -> bytes:
        """Returns the bytes after the last response, or waits for more."""
        data, self._received = self._received, b""
        return data or bytes(await self.stream.receive_some(65536))

    async def ask(
        self, path: str, body: bytes | dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        try:
            await self.send(path, body, headers)
        except (OSError, trio.BrokenResourceError):
            return BROKEN
        return await self.receive()

    async def close(self) -> None:
        await self.stream.aclose()

    def reset(self) -> None:
        """Resets the connection (RST)."""
        self.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with trio.CancelScope(shield=True):
            await self.close()


async def connect(server: ServerAddress, address: str = "127.0.0.1", worker: int | None = None) -> Connection:
    """Opens a connection; if a worker is given, one that this worker has accepted."""
    from tests.faults import ports_of

    if worker is None:
        return await Connection.open(server, address)
    others: list[Connection] = []
    accepted: Connection | None = None
    try:
        for _ in range(50):
            some = [await Connection.open(server, address) for _ in range(4)]
            others += some
            for connection in some:
                await connection.send("/healthz")
            for connection in some:
                assert (await connection.receive()).status == 200
            ports = ports_of(worker)
            accepted = next((connection for connection in some if connection.port in ports), None)
            if accepted is not None:
                return accepted
        raise AssertionError("that worker accepts no connection")
    finally:
        for other in others:
            if other is not accepted:
                await other.close()


async def ask_once(
    server: ServerAddress,
    path: str,
    body: bytes | dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    address: str = "127.0.0.1",
) -> Answer:
    async with await Connection.open(server, address) as connection:
        return await connection.ask(path, body, headers)


@dataclass
class Game:
    """A game with a registered session."""

    server: ServerAddress
    gsid: str
    location: str
    address: str
    headers: dict[str, str] = field(default_factory=dict)

    async def poll(self, worker: int | None = None) -> Answer:
        """Polls and waits for the response."""
        async with await connect(self.server, self.address, worker) as connection:
            return await connection.ask(POLL, {"gsid": self.gsid}, self.headers)

    async def poll_until_result(self) -> Answer:
        """Polls until the response is not RETRY, after the delay of each RETRY."""
        with trio.fail_after(60):
            while True:
                answer = await self.poll()
                if answer.outcome != "RETRY":
                    return answer
                await trio.sleep(answer.data["delay"])

    async def begin_poll(self, worker: int | None = None) -> Connection:
        """Sends a poll and does not wait for the response."""
        connection = await connect(self.server, self.address, worker)
        await connection.send(POLL, {"gsid": self.gsid}, self.headers)
        return connection

    async def close(self, status: str = "Success") -> Answer:
        return await ask_once(
            self.server, CLOSE, {"gsid": self.gsid, "status": status}, self.headers, address=self.address
        )

    async def info(self) -> dict[str, Any]:
        answer = await ask_once(self.server, INFO, {"gsid": self.gsid})
        assert answer.status == 200, answer
        session: dict[str, Any] = answer.data["session"]
        return session

    @asynccontextmanager
    async def socket(self, **options: Any) -> AsyncIterator["Socket"]:
        async with open_socket(self.server, self.gsid, options.pop("address", self.address), **options) as opened:
            yield opened


async def new_game(server: ServerAddress, *, address: str | None = None, **fields: Any) -> Game:
    address = address or new_address()
    answer = await ask_once(server, GET_GSID, fields, address=address)
    assert answer.status == 200, answer
    return Game(server, answer.data["gsid"], answer.headers["location"], address)


async def new_games(server: ServerAddress, count: int, **fields: Any) -> list[Game]:
    """Registers many sessions over a few connections, which is faster than one connection each."""
    games: list[Game] = []

    async def make(some: int) -> None:
        address = new_address()
        async with await Connection.open(server, address) as connection:
            for _ in range(some):
                answer = await connection.ask(GET_GSID, fields)
                assert answer.status == 200, answer
                games.append(Game(server, answer.data["gsid"], answer.headers["location"], address))

    async with trio.open_nursery() as nursery:
        for start in range(0, count, 50):
            nursery.start_soon(make, min(50, count - start))
    return games


async def begin_polls(games: list[Game], at_once: int = 50) -> list[Connection]:
    """Sends a poll of each game, each on its own connection."""
    connections: list[Connection | None] = [None] * len(games)

    async def begin(start: int) -> None:
        for n in range(start, len(games), at_once):
            connections[n] = await games[n].begin_poll()

    async with trio.open_nursery() as nursery:
        for start in range(at_once):
            nursery.start_soon(begin, start)
    return [connection for connection in connections if connection]


async def receive_all(connections: list[Connection]) -> list[Answer]:
    """Receives a response from each connection, in their order, and closes the connections."""
    answers = [BROKEN] * len(connections)

    async def receive(n: int) -> None:
        async with connections[n] as connection:
            answers[n] = await connection.receive()

    async with trio.open_nursery() as nursery:
        for n in range(len(connections)):
            nursery.start_soon(receive, n)
    return answers


class Socket:
    """The game's end of its WebSocket."""

    def __init__(self, connection: WebSocketConnection, stream: trio.SocketStream) -> None:
        self.connection = connection
        self.stream = stream

    async def event(self, *, seconds: float = LIMIT_S) -> dict[str, Any]:
        with trio.fail_after(seconds):
            event: dict[str, Any] = json.loads(await self.connection.get_message())
        return event

    async def next(self, name: str, *, seconds: float = LIMIT_S) -> dict[str, Any]:
        """Returns the next event with this name and skips others."""
        with trio.fail_after(seconds):
            while True:
                event = await self.event(seconds=seconds)
                if event["event"] == name:
                    return event

    async def stage(self) -> str:
        return str((await self.next("stage"))["stage"])

    async def closed(self, *, seconds: float = LIMIT_S) -> tuple[int, dict[str, Any]]:
        """Waits until the WebSocket is closed. Returns the close code and the last event."""
        last: dict[str, Any] = {}
        with trio.fail_after(seconds):
            while True:
                try:
                    last = await self.event(seconds=seconds)
                except ConnectionClosed as closed:
                    return int(closed.reason.code) if closed.reason else 1006, last

    def reset(self) -> None:
        self.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.socket.close()


@asynccontextmanager
async def open_socket(
    server: ServerAddress,
    gsid: str,
    address: str = "127.0.0.1",
    *,
    query: str = "",
    headers: dict[str, str] | None = None,
    worker: int | None = None,
) -> AsyncIterator[Socket]:
    connection = await connect(server, address, worker)
    extra_headers = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    closing = False
    try:
        async with trio.open_nursery() as nursery:
            websocket = await wrap_client_stream(
                nursery, connection.stream, "localhost", SOCKET + gsid + query, extra_headers=extra_headers
            )
            try:
                yield Socket(websocket, connection.stream)
            finally:
                closing = True
                with trio.move_on_after(1, shield=True):
                    await websocket.aclose()
                with trio.CancelScope(shield=True):
                    await connection.close()
                nursery.cancel_scope.cancel()
    except* LocalProtocolError:
        # The library answers a ping that arrives after it has sent its own close frame, and fails.
        if not closing:
            raise


class Player:
    """A signed-in user with a browser, who confirms and denies game sessions."""

    def __init__(self, server: Server, login: str) -> None:
        self.server = server
        with Browser(server) as browser:
            assert browser.sign_in(login).status_code == 303
            browser.open_account()
            self._csrf = browser.form("/logout")["csrf"]
            self._cookies = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())

    async def _post(self, path: str) -> int:
        headers = {
            "Cookie": self._cookies,
            "Origin": self.server.base_url,
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/x-www-form-urlencoded",
            "Host": urlsplit(self.server.base_url).netloc,
        }
        answer = await ask_once(self.server, path, f"csrf={self._csrf}".encode(), headers)
        return answer.status

    async def confirm(self, gsid: str) -> int:
        return await self._post(f"/game/{gsid}/continue")

    async def deny(self, gsid: str) -> int:
        return await self._post(f"/game/{gsid}/deny")

    async def confirm_all(self, games: list[Game], at_once: int = 20) -> None:
        async def confirm(start: int) -> None:
            for game in games[start::at_once]:
                assert await self.confirm(game.gsid) == 303

        async with trio.open_nursery() as nursery:
            for start in range(at_once):
                nursery.start_soon(confirm, start)


class Rows:
    """Direct access to the table of game sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, gsid: str) -> Any:
        (row,) = await self._database.run_sql("SELECT * FROM game_sessions WHERE gsid = $1", [gsid])
        return row

    async def status(self, gsid: str) -> str:
        return str((await self.get(gsid))["status"])

    async def run(self, sql: str, *values: Any) -> list[Any]:
        return await self._database.run_sql(sql, list(values))

    async def until(self, gsid: str, condition: Callable[[Any], bool], seconds: float = LIMIT_S) -> Any:
        end = time.monotonic() + seconds
        while not condition(row := await self.get(gsid)):
            assert time.monotonic() < end, dict(row)
            await trio.sleep(0.01)
        return row

    async def until_polled(self, gsid: str, number: int = 1) -> None:
        """Waits until the session has had so many polls."""
        await self.until(gsid, lambda row: row["poll"] >= number)
        await trio.sleep(0.05)  # the worker has yet to receive the result of the statement


@asynccontextmanager
async def rows_of(server: Server) -> AsyncIterator[Rows]:
    async with open_database(server.settings["SSO_DATABASE_URL"], 2) as database:
        yield Rows(database)
