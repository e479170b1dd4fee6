"""The ledger: what clients were told, to compare with what the service knows afterwards."""

import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import trio

SHOWN = 20  # lines of the report about what was lost


@dataclass
class Ledger:
    started: int = 0
    confirmed: int = 0
    delivered: int = 0
    waiting: int = 0  # games that poll at this moment
    waiting_at_starts: list[int] = field(default_factory=list)  # how many did when each login began
    lost: list[str] = field(default_factory=list)
    tokens_issued: int = 0  # to web sites
    refresh_tokens: list[str] = field(default_factory=list)  # that must be accepted afterwards
    revoked: list[str] = field(default_factory=list)  # that must not
    roles: dict[str, set[str]] = field(default_factory=dict)  # by user id, as last acknowledged
    refused_by_limit: int = 0
    wrong: list[str] = field(default_factory=list)  # differences that were found afterwards
    failures: Counter[str] = field(default_factory=Counter)  # of single requests, which were then repeated
    tokens: dict[int, list[str]] = field(default_factory=dict)  # by user
    wake_ups: list[float] = field(default_factory=list)  # seconds from the confirmation to the game's answer
    longest_gap_s: float = 0.0
    last_delivery: float | None = None

    @contextmanager
    def a_game_waits(self) -> Iterator[None]:
        self.waiting_at_starts.append(self.waiting)
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1

    def record_delivery(self, user: int, token: str, wake_up_s: float) -> None:
        now = trio.current_time()
        self.delivered += 1
        self.tokens.setdefault(user, []).append(token)
        self.wake_ups.append(wake_up_s)
        if self.last_delivery is not None:
            self.longest_gap_s = max(self.longest_gap_s, now - self.last_delivery)
        self.last_delivery = now

    def record_wrong(self, text: str) -> None:
        self.wrong.append(f"{datetime.now(UTC):%H:%M:%S} {text}")

    @property
    def is_clean(self) -> bool:
        return not self.lost and not self.wrong

    def report(self) -> str:
        ordered = sorted(self.wake_ups) or [0.0]
        p50, p99 = (1000 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
        waiting = self.waiting_at_starts or [0]
        lines = [
            f"polls      {statistics.median(waiting):.0f} at a time, {max(waiting)} at most",
            f"logins     {self.started} started, {self.confirmed} confirmed, {self.delivered} delivered",
            f"sites      {self.tokens_issued} tokens issued, {len(self.revoked)} revoked",
            f"roles      of {len(self.roles)} users saved, {self.refused_by_limit} saves refused by the limit",
            f"lost       {len(self.lost)} while it ran, {len(self.wrong)} differences afterwards",
            f"answer     p50 {p50:.0f} ms, p99 {p99:.0f} ms after the confirmation",
            f"gap        {self.longest_gap_s:.1f} s at most without a delivery",
            f"repeated   {dict(self.failures) or 'no request'}",
            *self.lost[:SHOWN],
            *self.wrong[:SHOWN],
        ]
        return "\n".join(lines)
