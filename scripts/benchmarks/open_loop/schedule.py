"""When requests are due: at a constant rate, and the kinds mixed evenly."""

from collections.abc import Iterator, Mapping


def mixed(shares: Mapping[str, int]) -> Iterator[str]:
    """Yields kinds for ever, each as often as its share says and spread as evenly as possible."""
    total = sum(shares.values())
    credit = dict.fromkeys(shares, 0)
    while True:
        for kind, share in shares.items():
            credit[kind] += share
        chosen = max(credit, key=credit.__getitem__)
        credit[chosen] -= total
        yield chosen


def arrivals(rate: float, shares: Mapping[str, int], seconds: float) -> Iterator[tuple[float, str]]:
    """Yields the second and the kind of each request, counted from the begin of the load.

    The moments do not depend on the answers: independent clients send whether or not the server is slow.
    """
    for number, kind in enumerate(mixed(shares)):
        due = number / rate
        if due >= seconds:
            return
        yield due, kind
