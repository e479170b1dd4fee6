"""A steady load of every kind: memory, descriptors, tables and response times do not grow.

Growth is computed over the second half, because caches fill during the first. Only tables in which every row expires
are judged: the others keep the history of the service.
"""

from scripts.benchmarks.soak import MIN_MINUTES, growth, measure
from scripts.proofs.part import PartResult, Progress

# The largest growth an hour of each column.
LIMITS = {"RSS MB": 20.0, "descriptors": 20.0, "p99 ms": 20.0, "expiring rows MB": 20.0}
JUDGED_MINUTES = 20.0  # a shorter run is too short to tell growth from chance
JUDGED_LATER = {"expiring rows MB": 60.0}  # the first rows expire after a quarter of an hour
COLUMNS = (*LIMITS, "database MB")


def run(minutes: float, progress: Progress) -> PartResult:
    progress(f"{minutes:.0f} minutes of load …")
    rows = measure(max(minutes, MIN_MINUTES))
    result = PartResult(
        rounds=len(rows),
        invariants=[f"{name} grows by less than {limit:.0f} an hour." for name, limit in LIMITS.items()],
    )
    for column in COLUMNS:
        change = growth(rows, column)
        result.figures.append(
            {"Figure": column, "First": round(rows[0][column], 1), "Last": round(rows[-1][column], 1)}
            | {"Growth an hour": round(change, 1)}
        )
        needed = JUDGED_LATER.get(column, JUDGED_MINUTES)
        if column in LIMITS and minutes < needed:
            result.not_run[f"limit of {column}"] = f"needs {needed:.0f} minutes of this part"
        elif change > LIMITS.get(column, float("inf")):
            result.violations.append(f"{column} grows by {change:.1f} an hour")
    return result
