"""Three times as many requests as the service can answer: it goes on answering as many as it can, and refuses the rest.

The requests are the mix of ``scripts/bench latency``. They arrive at fixed times, whether or not earlier ones were
answered, as those of many independent clients do. The peak is measured before and after each overload, because the
speed of a virtual machine changes from one minute to the next.
"""

import statistics
import time
from collections.abc import Sequence

from scripts.benchmarks.latency import HEARTBEAT_S, Load, whole_load
from scripts.benchmarks.latency_kinds import POLL
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.open_loop.figures import Figures
from scripts.benchmarks.open_loop.generator import REFUSED
from scripts.proofs.part import PartResult, Progress
from sso.serve.process_tuning import raise_open_file_limit
from tests.kit import postgres

MAX_LAG_S = 0.25  # of 95 % of the requests: clients that send them later than they are due do not prove anything
NOT_SENT = "no connection"  # all connections of the clients are in use
ROUNDS = 3
PHASES = 8  # of equal length: an overload in each round, a part of one after it, and the peaks between
OTHER_S = 45  # to start and to wait
FACTOR = 3
MIN_GOODPUT = 0.8  # of the peak
MAX_REFUSAL_S = 1.0
RECOVERY_S = 5.0
WORKERS = 1  # the clients need the rest of the machine
INVARIANTS = [
    f"At {FACTOR} times the peak, at least {MIN_GOODPUT:.0%} of the peak is answered, in the median round.",
    f"Every other request gets 503 with Retry-After, 95 % of them within {MAX_REFUSAL_S:.0f} s.",
    f"{RECOVERY_S:.0f} s after the overload, no request is refused.",
]


def run(minutes: float, progress: Progress) -> PartResult:
    result = PartResult(invariants=list(INVARIANTS))
    seconds = max(1.0, min(20.0, (minutes * 60 - OTHER_S) / PHASES))
    raise_open_file_limit()
    settings = {"SSO_WORKERS": str(WORKERS), "SSO_GSID_HEARTBEAT_S": str(HEARTBEAT_S)}
    with postgres.running() as database, running_service(database.fresh(), **settings) as (server, target):
        load = whole_load("overload", server, target)
        try:
            _prove(result, load, seconds, progress)
        finally:
            load.generator.close()
    return result


def _prove(result: PartResult, load: Load, seconds: float, progress: Progress) -> None:
    progress("finding the peak …")
    before, shares = load.capacity(seconds), []
    for number in range(1, ROUNDS + 1):
        load.contest.capacity = before
        progress(f"round {number} of {ROUNDS}: {FACTOR} times the peak of {before:.0f} requests a second …")
        overload = _measure(result, "overload", load, FACTOR * 100, seconds)
        _judge_refusals(result, overload)
        time.sleep(RECOVERY_S)
        recovered = _measure(result, "afterwards", load, 50, seconds / 3)
        if recovered.failures:
            result.violations.append(f"after the overload: {dict(recovered.failures)}")
        after = load.capacity(seconds)
        shares.append(_answered(load, overload) / statistics.mean((before, after)))
        before = after
    if statistics.median(shares) < MIN_GOODPUT:
        result.violations.append(f"{', '.join(f'{share:.0%}' for share in shares)} of the peak were answered")


def _measure(result: PartResult, phase: str, load: Load, percent: int, seconds: float) -> Figures:
    """Sends this share of the peak and adds what was measured to the result."""
    load.measure(percent, seconds)
    figures = load.contest.levels[percent]
    kinds = load.contest.shares
    answers = [latency for kind in kinds for latency in figures.kinds[kind].latencies]
    result.rounds += 1
    result.requests += figures.due(kinds)
    result.figures.append(
        {
            "Phase": phase,
            "Peak a second": round(load.contest.capacity),
            "Answered a second": round(_answered(load, figures)),
            "p95 of answers ms": _p95_ms(answers),
            "503": figures.failures[REFUSED],
            "p95 of refusals ms": _p95_ms(figures.refusals),
            "No answer": figures.failures["no answer"],
            "Not sent": figures.failures[NOT_SENT] + figures.skipped,
            "p95 of the clients' lag ms": _p95_ms(figures.lags),
        }
    )
    return figures


def _answered(load: Load, figures: Figures) -> float:
    return figures.answered(load.contest.shares) / figures.seconds


def _judge_refusals(result: PartResult, overload: Figures) -> None:
    lag_ms, refusal_ms = _p95_ms(overload.lags), _p95_ms(overload.refusals)
    if lag_ms > MAX_LAG_S * 1000:
        result.violations.append(f"the clients sent their requests {lag_ms} ms late, so nothing is proven")
    # A poll is held until the request that ends its session is accepted.
    failed = {name for kind, figures in overload.kinds.items() if kind != POLL for name in figures.failures}
    if refusal_ms > MAX_REFUSAL_S * 1000 or failed - {REFUSED, NOT_SENT}:
        result.violations.append(f"refusals: {dict(overload.failures)}, p95 {refusal_ms} ms")


def _p95_ms(seconds: Sequence[float]) -> int:
    return round(statistics.quantiles(seconds, n=20)[-1] * 1000) if len(seconds) > 1 else 0
