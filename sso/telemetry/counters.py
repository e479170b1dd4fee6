"""Counters of what the service does: logins, tokens, permission checks and so on.

Counting is an addition in a dictionary of this process. The exporters (``metrics.py``, ``otel``) read the
dictionaries from time to time. Labels are names from the source, never values that a client has sent.
"""

from collections.abc import Sequence
from typing import ClassVar


class DomainCounter:
    """Counts events by the values of its labels."""

    registered: ClassVar[list["DomainCounter"]] = []

    def __init__(self, name: str, description: str, *labels: str, begins_with: Sequence[tuple[str, ...]]) -> None:
        self.name = name  # Prometheus shows it as sso_<name>_total
        self.description = description
        self.labels = labels
        self.begins_with = begins_with  # values of the labels that are shown before they are counted, as 0
        self.counts: dict[tuple[str, ...], int] = {}
        DomainCounter.registered.append(self)

    def add(self, *values: str, count: int = 1) -> None:
        counts = self.counts
        counts[values] = counts.get(values, 0) + count


LOGINS = DomainCounter(
    "logins",
    "Attempts to sign in, by method and result",
    "method",
    "result",
    begins_with=[
        ("password", "success"), ("password", "wrong_credentials"), ("code", "success"), ("passkey", "success"),
        ("provider", "success"), ("ticket", "success"), ("token", "success"), ("game", "success"),
    ],
)  # fmt: skip
TOKENS_ISSUED = DomainCounter(
    "tokens_issued",
    "Token responses of OAuth, by grant",
    "grant",
    begins_with=[
        ("authorization_code",), ("refresh_token",), ("client_credentials",), ("device_code",), ("exchange",),
    ],
)  # fmt: skip
PERMISSION_CHECKS = DomainCounter(
    "permission_checks",
    "Evaluations of a user's permissions, by kind",
    "kind",
    begins_with=[("list",), ("list_short",), ("tree",), ("roles",), ("login",), ("caller",)],
)
THROTTLED_REQUESTS = DomainCounter(
    "throttled_requests",
    "Requests refused by a rate limit, by limit",
    "limit",
    begins_with=[("login",), ("getgsid",), ("early polls",), ("authorize",), ("admin",)],
)
DELIVERIES = DomainCounter(
    "deliveries",
    "Attempts to deliver a mail, a logout notification, an event for a webhook or a signal, by result",
    "queue",
    "result",
    begins_with=[
        (queue, result)
        for queue in ("mail", "logout", "webhook", "signal")
        for result in ("delivered", "retry", "failed")
    ],
)
TASK_FAILURES = DomainCounter(
    "background_task_failures",
    "Failures of background tasks, by task",
    "task",
    begins_with=[("bus",), ("webhooks",), ("mail queue",)],
)
