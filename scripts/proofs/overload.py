"""Three times as many requests as the service can answer: it goes on answering as many as it can, and refuses the rest.

Requests arrive at fixed times, whether or not earlier ones were answered, as those of many independent clients do.
"""

import math
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import trio

from scripts.proofs.part import PartResult, Progress
from tests.kit import postgres
from tests.kit.oauth import USERINFO, close_all, new_browser, new_site
from tests.kit.server import NO_LIMITS, QUICK, running

CLOSED_LOOP_CLIENTS = 48  # that find the peak
CONNECTIONS = 1500  # of the overload; a request that finds none free was not sent
FACTOR = 3
MIN_GOODPUT = 0.8  # of the peak
MAX_REFUSAL_S = 1.0
RECOVERY_S = 5.0
WORKERS = 1  # the clients need the rest of the machine
INVARIANTS = [
    f"At {FACTOR} times the peak, at least {MIN_GOODPUT:.0%} of the peak is answered.",
    f"Every other request gets 503 with Retry-After, 95 % of them within {MAX_REFUSAL_S:.0f} s.",
    f"{RECOVERY_S:.0f} s after the overload, no request is refused.",
]


@dataclass
class Tally:
    statuses: Counter[str] = field(default_factory=Counter)
    answer_s: list[float] = field(default_factory=list)
    refusal_s: list[float] = field(default_factory=list)
    without_retry_after: int = 0

    def add(self, answer: "Answer | None", seconds: float) -> None:
        if answer is None:
            self.statuses["no answer"] += 1
            return
        self.statuses[str(answer.status)] += 1
        (self.answer_s if answer.status == 200 else self.refusal_s).append(seconds)
        self.without_retry_after += answer.status == 503 and not answer.has_retry_after


@dataclass(frozen=True)
class Answer:
    status: int
    has_retry_after: bool
    is_last: bool  # of its connection


class Client:
    """A connection that sends the same request again and again, with as little work as possible."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port, self._request = port, request
        self._stream: trio.SocketStream | None = None

    async def send(self) -> Answer | None:
        try:
            if self._stream is None:
                self._stream = await trio.open_tcp_stream("127.0.0.1", self._port)
            await self._stream.send_all(self._request)
            answer = await self._receive(self._stream)
        except (trio.BrokenResourceError, OSError):
            answer = None
        if (answer is None or answer.is_last) and self._stream is not None:
            await trio.aclose_forcefully(self._stream)
            self._stream = None
        return answer

    async def _receive(self, stream: trio.SocketStream) -> Answer | None:
        received = b""
        while b"\r\n\r\n" not in received:
            more = await stream.receive_some(65536)
            if not more:
                return None
            received += more
        head, _, body = received.partition(b"\r\n\r\n")
        head = head.lower()
        length = int(head.partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        while len(body) < length:
            more = await stream.receive_some(65536)
            if not more:
                return None
            body += more
        return Answer(int(head[9:12]), b"retry-after:" in head, b"connection: close" in head)


async def find_peak(port: int, request: bytes, seconds: float) -> float:
    """Returns the answers per second to clients that each wait for their answer."""
    tally = Tally()

    async def repeat() -> None:
        client = Client(port, request)
        while True:
            began = time.perf_counter()
            tally.add(await client.send(), time.perf_counter() - began)

    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            for _ in range(CLOSED_LOOP_CLIENTS):
                nursery.start_soon(repeat)
    return tally.statuses["200"] / seconds


async def send_at_rate(port: int, request: bytes, rate: float, seconds: float) -> Tally:
    """Sends requests at fixed times. A client whose request is not answered in 10 s gives up."""
    tally = Tally()
    free = [Client(port, request) for _ in range(CONNECTIONS)]

    async def one(client: Client, due: float) -> None:
        answer = None
        with trio.move_on_after(10):
            answer = await client.send()
        tally.add(answer, time.perf_counter() - due)
        free.append(client)

    async with trio.open_nursery() as nursery:
        began, sent = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds:
            for _ in range(math.floor(passed * rate) - sent):
                sent += 1
                if free:
                    nursery.start_soon(one, free.pop(), began + sent / rate)
                else:
                    tally.statuses["not sent"] += 1
            await trio.sleep(0.002)
    return tally


def run(minutes: float, progress: Progress) -> PartResult:
    result = PartResult(invariants=list(INVARIANTS))
    seconds = max(3.0, min(60.0, minutes * 60 / 6))
    with postgres.running() as database, tempfile.TemporaryDirectory() as folder:
        settings = QUICK | NO_LIMITS | {"SSO_WORKERS": str(WORKERS), "SSO_DATABASE_URL": database.fresh()}
        settings |= {"SSO_LOG_LEVEL": "error", "SSO_CONNECTIONS_PER_ADDRESS": str(2 * CONNECTIONS)}
        with running(Path(folder), **settings) as server:
            request = _userinfo_request(server)
            port = httpx.URL(server.base_url).port or 80
            progress("finding the peak …")
            trio.run(find_peak, port, request, 2.0)
            peak = trio.run(find_peak, port, request, seconds)
            progress(f"the peak is {peak:.0f} requests a second; {FACTOR} times that for {seconds:.0f} s …")
            overload = trio.run(send_at_rate, port, request, FACTOR * peak, seconds)
            time.sleep(RECOVERY_S)
            progress("half of the peak, after the overload …")
            recovered = trio.run(send_at_rate, port, request, peak / 2, seconds / 3)
            close_all()
    _judge(result, peak, overload, recovered, seconds)
    return result


def _userinfo_request(server: Any) -> bytes:
    token = new_site(server).tokens(new_browser(server).sign_in())["access_token"]
    host = httpx.URL(server.base_url).netloc.decode()
    return f"GET {USERINFO} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def _judge(result: PartResult, peak: float, overload: Tally, recovered: Tally, seconds: float) -> None:
    goodput = len(overload.answer_s) / seconds
    for name, tally, length in (("overload", overload, seconds), ("afterwards", recovered, seconds / 3)):
        result.rounds += 1
        result.requests += sum(tally.statuses.values())
        result.figures.append(
            {
                "Phase": name,
                "Peak a second": round(peak),
                "Answered a second": round(len(tally.answer_s) / length),
                "p95 of answers ms": _p95_ms(tally.answer_s),
                "503": tally.statuses["503"],
                "p95 of refusals ms": _p95_ms(tally.refusal_s),
                "No answer": tally.statuses["no answer"],
                "Not sent": tally.statuses["not sent"],
            }
        )
    if goodput < MIN_GOODPUT * peak:
        result.violations.append(f"{goodput:.0f} of {peak:.0f} requests a second were answered under overload")
    refused_late = _p95_ms(overload.refusal_s) > MAX_REFUSAL_S * 1000
    if overload.without_retry_after or refused_late or set(overload.statuses) - {"200", "503", "not sent"}:
        result.violations.append(f"refusals: {dict(overload.statuses)}, p95 {_p95_ms(overload.refusal_s)} ms")
    if set(recovered.statuses) - {"200"}:
        result.violations.append(f"after the overload: {dict(recovered.statuses)}")


def _p95_ms(seconds: list[float]) -> int:
    return round(statistics.quantiles(seconds, n=20)[-1] * 1000) if len(seconds) > 1 else 0
