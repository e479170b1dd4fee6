"""Counters of what the service does: logins, tokens, permission checks and so on.

Counting is an addition in a dictionary of this process. The exporters of metrics read the dictionaries from time to
time (``sso/metrics.py``, ``sso/otel``). Labels are names from the source, never values that a client has sent.
"""

from typing import ClassVar


class DomainCounter:
    """Counts events by the values of its labels."""

    registered: ClassVar[list["DomainCounter"]] = []

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self.name = name  # Prometheus shows it as sso_<name>_total
        self.description = description
        self.labels = labels
        self.counts: dict[tuple[str, ...], int] = {}
        DomainCounter.registered.append(self)

    def add(self, *values: str) -> None:
        counts = self.counts
        counts[values] = counts.get(values, 0) + 1


LOGINS = DomainCounter("logins", "Attempts to sign in, by method and result", "method", "result")
TOKENS_ISSUED = DomainCounter("tokens_issued", "Token responses of OAuth, by grant", "grant")
PERMISSION_CHECKS = DomainCounter("permission_checks", "Evaluations of a user's permissions, by kind", "kind")
THROTTLED_REQUESTS = DomainCounter("throttled_requests", "Requests refused by a rate limit, by limit", "limit")
MAILS = DomainCounter("mails", "Attempts to deliver a mail, by result", "result")
TASK_FAILURES = DomainCounter("background_task_failures", "Failures of background tasks, by task", "task")
