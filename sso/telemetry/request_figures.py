"""Counts the requests of this worker and their durations, between two writes of the figures."""

from bisect import bisect_left
from collections import Counter

BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # upper bounds; further requests are in "more"
LATENCY_NAMES = (*(f"latency_{bound}" for bound in BOUNDS_MS), "latency_more")
# Requests that wait on purpose say nothing about the speed of the service.
WAITING_ROUTES = frozenset({"/proxy/api/gameSession/getGsidResult", "/api/admin/changes", "/proxy/oauth/token?wait"})


class RequestFigures:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        counts = self._counts
        counts["requests"] += 1
        if status >= 500:
            counts["errors"] += 1
        if route not in WAITING_ROUTES:
            counts[LATENCY_NAMES[bisect_left(BOUNDS_MS, seconds * 1000)]] += 1

    def take(self) -> Counter[str]:
        counts, self._counts = self._counts, Counter()
        return counts


def quantile_ms(buckets: list[int], share: float) -> float | None:
    """Returns an estimate of a quantile from the counts of LATENCY_NAMES; None without requests."""
    total = sum(buckets)
    if not total:
        return None
    rank, seen = share * total, 0
    for index, count in enumerate(buckets):
        if count and seen + count >= rank:
            low = BOUNDS_MS[index - 1] if index else 0
            high = BOUNDS_MS[index] if index < len(BOUNDS_MS) else BOUNDS_MS[-1] * 2
            return low + (high - low) * max(0.0, rank - seen) / count
        seen += count
    return None
