"""Moments as they are stored, in Unix seconds, and as they are shown to clients."""

from datetime import UTC, datetime

_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def utc_moment(seconds: int) -> datetime:
    """Returns the moment in UTC. Ends may be stored that are later than any date: they become the last one."""
    return datetime.fromtimestamp(seconds, UTC) if seconds < _LAST.timestamp() else _LAST


def rfc3339(moment: datetime) -> str:
    """Returns the moment as clients see it, such as ``2026-01-31T18:00:00Z``."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
