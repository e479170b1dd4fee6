"""Compares durations, to see whether they reveal a secret."""

import math
import statistics


def welch(first: list[float], second: list[float]) -> float:
    """Returns the t of Welch's test, without the slowest tenth of the samples."""
    first, second = (sorted(times)[: max(2, len(times) * 9 // 10)] for times in (first, second))
    spread = statistics.variance(first) / len(first) + statistics.variance(second) / len(second)
    return (statistics.mean(first) - statistics.mean(second)) / math.sqrt(spread or 1e-30)
