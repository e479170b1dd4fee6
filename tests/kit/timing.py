"""Compares durations: with a promise of the server, or with each other, to see whether they reveal a secret."""

import math
import os
import statistics

# How many times longer than promised something may take. The machine of a usual run is busy and stalls for seconds;
# scripts/faults is for a quiet one.
SLACK = 2.0 if "SSO_TEST_ROUNDS" in os.environ else 20.0


def welch(first: list[float], second: list[float]) -> float:
    """Returns the t of Welch's test, without the slowest tenth of the samples."""
    first, second = (sorted(times)[: max(2, len(times) * 9 // 10)] for times in (first, second))
    spread = statistics.variance(first) / len(first) + statistics.variance(second) / len(second)
    return (statistics.mean(first) - statistics.mean(second)) / math.sqrt(spread or 1e-30)
