"""A load generator that needs little CPU time: runs many scenarios at a time with one thread and one epoll.

A scenario is a generator: it yields a request and receives the response. It has succeeded when it returns.
"""

import re
import select
import socket
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

ANSWER_S = 15.0
HOST = "127.0.0.1"  # some servers check it
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSE = re.compile(r"^connection: *close", re.IGNORECASE | re.MULTILINE)
_COOKIE = re.compile(r"^set-cookie: *([^=;]+)=([^;]*)(.*)$", re.IGNORECASE | re.MULTILINE)
_LOCATION = re.compile(r"^location: *(\S+)", re.IGNORECASE | re.MULTILINE)


class RequestFailed(Exception):
    """A response with which a scenario cannot continue."""


class BenchmarkError(SystemExit):
    """The measurement is not possible. Ends the program unless the caller can do without it."""


class Answer(NamedTuple):
    status: int
    head: str
    body: bytes

    @property
    def location(self) -> str:
        found = _LOCATION.search(self.head)
        if not found:
            raise RequestFailed(f"{self.status} without a Location")
        return found[1]

    @property
    def closes(self) -> bool:
        """Whether the server closes the connection."""
        return _CLOSE.search(self.head) is not None


Scenario = Generator[bytes, Answer, None]


@dataclass
class Tally:
    """The result of a load. ``took`` has the seconds of each successful scenario."""

    seconds: float
    took: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        took = sorted(self.took)
        return took[min(len(took) - 1, int(len(took) * share))] if took else 0.0


class CookieJar(dict[str, str]):
    """The cookies of one browser at one site. Paths are ignored."""

    def take(self, answer: Answer) -> None:
        for name, value, rest in _COOKIE.findall(answer.head):
            if "max-age=0" in rest.lower() or "1970" in rest:
                self.pop(name, None)
            else:
                self[name] = value

    def headers(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.items())} if self else {}


def get(path: str, headers: Mapping[str, str] | None = None) -> bytes:
    return request("GET", path, headers or {})


def post(path: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> bytes:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return request("POST", path, {**kind, **(headers or {})}, urlencode(form).encode())


def post_json(path: str, body: bytes) -> bytes:
    return request("POST", path, {"Content-Type": "application/json"}, body)


def request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", *(f"{name}: {value}" for name, value in headers.items())]
    if method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


class _Client:
    """One connection and its current scenario."""

    def __init__(self, address: tuple[str, int], scenario: Scenario) -> None:
        self._address = address
        self.sock = socket.create_connection(address, timeout=ANSWER_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""
        self.begin(scenario)

    def begin(self, scenario: Scenario) -> None:
        self._journey = scenario
        self.began = time.perf_counter()
        self.sock.sendall(next(scenario))

    def receive(self) -> bool:
        """Reads available data. Returns True when the scenario has ended."""
        data = self.sock.recv(65536)
        if not data:
            raise RequestFailed("the connection was closed")
        self._read += data
        answer = parse_answer(self._read)
        if answer is None:
            return False
        if answer.closes:
            raise RequestFailed("the server closes the connection")
        self._read = b""
        try:
            self.sock.sendall(self._journey.send(answer))
        except StopIteration:
            return True
        return False


def parse_answer(data: bytes) -> Answer | None:
    """Returns None if the answer is not complete yet."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head, body = data[:end], data[end + 4 :]
    if found := _LENGTH.search(head):
        if len(body) < int(found[1]):
            return None
    elif _CHUNKED.search(head):
        if not body.endswith(b"0\r\n\r\n"):
            return None
        body = _joined(body)
    text = head.decode("latin-1").replace("\r\n", "\n")
    return Answer(int(text[9:12]), text, body)


def _joined(chunks: bytes) -> bytes:
    pieces: list[bytes] = []
    while True:
        size, _, rest = chunks.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if not length:
            return b"".join(pieces)
        pieces.append(rest[:length])
        chunks = rest[length + 2 :]


def run(base_url: str, connections: int, seconds: float, scenario: Callable[[int], Scenario]) -> Tally:
    """Runs scenarios one after the other on each connection until the time is over. Unfinished ones are not counted."""
    numbers = range(connections)
    return _drive(base_url, seconds, {number: _endless(scenario, number) for number in numbers})


def run_all(base_url: str, scenarios: Iterable[Scenario], connections: int, seconds: float) -> Tally:
    """Runs each scenario once, as far as the time allows."""
    left = iter(scenarios)
    return _drive(base_url, seconds, dict.fromkeys(range(connections), left))


def _endless(scenario: Callable[[int], Scenario], number: int) -> Generator[Scenario, None, None]:
    while True:
        yield scenario(number)


def _drive(base_url: str, seconds: float, sources: Mapping[int, Iterable[Scenario]]) -> Tally:
    parts = urlsplit(base_url)
    address = (parts.hostname or "", parts.port or 80)
    tally, began = Tally(seconds), time.perf_counter()
    end = began + seconds
    with ExitStack() as stack, select.epoll() as epoll:
        clients: dict[int, tuple[_Client, Iterable[Scenario]]] = {}

        def start(source: Iterable[Scenario]) -> None:
            scenario = next(iter(source), None)
            if scenario is not None:
                client = _Client(address, scenario)
                stack.callback(client.sock.close)
                clients[client.sock.fileno()] = client, source
                epoll.register(client.sock, select.EPOLLIN)

        for source in sources.values():
            start(source)
        while clients and time.perf_counter() < end:
            for number, _ in epoll.poll(0.5):
                client, source = clients[number]
                try:
                    if not client.receive():
                        continue
                    tally.took.append(time.perf_counter() - client.began)
                    following = next(iter(source), None)
                    if following is not None:
                        client.begin(following)
                        continue
                except (RequestFailed, OSError, AssertionError) as error:
                    tally.failures.append(f"{type(error).__name__}: {error}")
                    if len(tally.failures) > 1000:
                        raise BenchmarkError(f"too many failures: {tally.failures[0]}") from None
                    epoll.unregister(client.sock)
                    client.sock.close()
                    del clients[number]
                    start(source)
                    continue
                epoll.unregister(client.sock)
                client.sock.close()
                del clients[number]
        tally.seconds = time.perf_counter() - began
    return tally
