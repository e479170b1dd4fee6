"""Keeps what requests cost, for the report of a long run."""

import os
from pathlib import Path

from tests.cost.metered_server import Bounds, Cost

SHOWN = 10


class CostLog:
    def __init__(self) -> None:
        self._entries: list[tuple[float, float, str]] = []

    def add(self, name: str, cost: Cost, bounds: Bounds) -> None:
        self._entries.append((cost.cpu_s, cost.longest_step_s, f"{name}: {cost.text(bounds)}"))

    def write(self) -> None:
        """Writes the number of requests and the most expensive ones to the file that SSO_TEST_COSTS names."""
        if "SSO_TEST_COSTS" not in os.environ or not self._entries:
            return
        costly = sorted(self._entries, reverse=True)[:SHOWN]
        blocking = sorted(self._entries, key=lambda entry: -entry[1])[:SHOWN]
        lines = [f"{len(self._entries)} requests", "most CPU time:", *(entry[2] for entry in costly)]
        lines += ["longest steps:", *(entry[2] for entry in blocking)]
        Path(os.environ["SSO_TEST_COSTS"]).write_text("\n".join(lines) + "\n")
