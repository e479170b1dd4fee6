"""Parameters of rules: stored as a comma-separated string, merged as a set that keeps its order."""

from collections.abc import Iterable


def split(stored: object) -> tuple[str, ...]:
    """Returns the parameters of a stored string."""
    return tuple(stored.split(",")) if isinstance(stored, str) and stored else ()


def merge(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for parts in lists for part in parts))
