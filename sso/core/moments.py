"""Moments that are stored as Unix seconds."""

from datetime import UTC, datetime

_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def utc_moment(seconds: int) -> datetime:
    """Returns the moment in UTC. Ends may be stored that are later than any date: they become the last one."""
    return datetime.fromtimestamp(seconds, UTC) if seconds < _LAST.timestamp() else _LAST
