"""Parameters of rules: stored as a comma-separated string, merged as an ordered set."""

from collections.abc import Iterable


def split(stored: object) -> tuple[str, ...]:
    """The parameters in a stored string."""
    return tuple(stored.split(",")) if isinstance(stored, str) and stored else ()


def merge(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All parameters in the order of their first occurrence, each once."""
    return tuple(dict.fromkeys(param for params in lists for param in params))
