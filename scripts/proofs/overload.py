"""Three times as many requests as the service can answer: it goes on answering as many as it can, and refuses the rest.

Requests arrive at fixed times, whether or not earlier ones were answered, as those of many independent clients do.
"""

import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from scripts.benchmarks.http_clients import RequestFailed, Scenario, get
from scripts.benchmarks.open_loop.figures import Figures
from scripts.benchmarks.open_loop.generator import Generator, Planned
from scripts.proofs.part import PartResult, Progress
from tests.kit import postgres
from tests.kit.oauth import USERINFO, close_all, new_browser, new_site
from tests.kit.server import NO_LIMITS, QUICK, running

CLOSED_LOOP_CLIENTS = 48  # that find the peak
CONNECTIONS = 1500  # of the overload; a request that finds none free is not sent
ANSWER_S = 10.0  # then a client gives up
MAX_LAG_S = 0.25  # of 95 % of the requests: clients that send them later than they are due do not prove anything
KIND = "userinfo"
NOT_SENT = "no connection"
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
class Clients:
    """Send the same request again and again, and note how long the answers and the refusals took."""

    port: int
    request: bytes
    answer_s: list[float] = field(default_factory=list)
    refusal_s: list[float] = field(default_factory=list)

    def find_peak(self, seconds: float) -> float:
        """Returns the answers per second to clients that each wait for their answer."""
        generator = self._generator(CLOSED_LOOP_CLIENTS)
        try:
            return generator.run_closed(CLOSED_LOOP_CLIENTS, {KIND: 1}, seconds).answered([KIND]) / seconds
        finally:
            generator.close()

    def send_at_rate(self, rate: float, seconds: float) -> Figures:
        """Sends requests at fixed times."""
        generator = self._generator(CONNECTIONS)
        self.answer_s, self.refusal_s = [], []
        try:
            return generator.run_open(rate, {KIND: 1}, seconds)
        finally:
            generator.close()

    def _generator(self, connections: int) -> Generator:
        workload = {KIND: lambda: [Planned(KIND, self._ask())]}
        return Generator(("127.0.0.1", self.port), workload, answer_s=ANSWER_S, connections=connections)

    def _ask(self) -> Scenario:
        began = time.perf_counter()
        answer = yield self.request
        took = time.perf_counter() - began
        (self.answer_s if answer.status == 200 else self.refusal_s).append(took)
        if answer.status != 200:
            raise RequestFailed


def run(minutes: float, progress: Progress) -> PartResult:
    result = PartResult(invariants=list(INVARIANTS))
    seconds = max(3.0, min(60.0, minutes * 60 / 6))
    with postgres.running() as database, tempfile.TemporaryDirectory() as folder:
        settings = QUICK | NO_LIMITS | {"SSO_WORKERS": str(WORKERS), "SSO_DATABASE_URL": database.fresh()}
        settings |= {"SSO_LOG_LEVEL": "error", "SSO_CONNECTIONS_PER_ADDRESS": str(2 * CONNECTIONS)}
        with running(Path(folder), **settings) as server:
            clients = Clients(httpx.URL(server.base_url).port or 80, _userinfo_request(server))
            progress("finding the peak …")
            clients.find_peak(2.0)
            peak = clients.find_peak(seconds)
            progress(f"the peak is {peak:.0f} requests a second; {FACTOR} times that for {seconds:.0f} s …")
            overload = clients.send_at_rate(FACTOR * peak, seconds)
            _judge_overload(result, peak, overload, clients)
            time.sleep(RECOVERY_S)
            progress("half of the peak, after the overload …")
            recovered = clients.send_at_rate(peak / 2, seconds / 3)
            _add_figures(result, "afterwards", peak, recovered, clients)
            if recovered.failures:
                result.violations.append(f"after the overload: {dict(recovered.failures)}")
            close_all()
    return result


def _userinfo_request(server: Any) -> bytes:
    token = new_site(server).tokens(new_browser(server).sign_in())["access_token"]
    return get(USERINFO, {"Authorization": f"Bearer {token}"})


def _judge_overload(result: PartResult, peak: float, overload: Figures, clients: Clients) -> None:
    _add_figures(result, "overload", peak, overload, clients)
    lag_ms, refusal_ms = _p95_ms(overload.lags), _p95_ms(clients.refusal_s)
    if lag_ms > MAX_LAG_S * 1000:
        result.violations.append(f"the clients sent their requests {lag_ms} ms late, so nothing is proven")
    goodput = overload.answered([KIND]) / overload.seconds
    if goodput < MIN_GOODPUT * peak:
        result.violations.append(f"{goodput:.0f} of {peak:.0f} requests a second were answered under overload")
    if refusal_ms > MAX_REFUSAL_S * 1000 or set(overload.failures) - {"503", NOT_SENT}:
        result.violations.append(f"refusals: {dict(overload.failures)}, p95 {refusal_ms} ms")


def _add_figures(result: PartResult, phase: str, peak: float, figures: Figures, clients: Clients) -> None:
    result.rounds += 1
    result.requests += figures.due([KIND])
    result.figures.append(
        {
            "Phase": phase,
            "Peak a second": round(peak),
            "Answered a second": round(figures.answered([KIND]) / figures.seconds),
            "p95 of answers ms": _p95_ms(clients.answer_s),
            "503": figures.failures["503"],
            "p95 of refusals ms": _p95_ms(clients.refusal_s),
            "No answer": figures.failures["no answer"],
            "Not sent": figures.failures[NOT_SENT],
            "p95 of the clients' lag ms": _p95_ms(figures.lags),
        }
    )


def _p95_ms(seconds: list[float]) -> int:
    return round(statistics.quantiles(seconds, n=20)[-1] * 1000) if len(seconds) > 1 else 0
