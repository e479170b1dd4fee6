"""The report of a run: what each part did, on which machine, with which commit."""

import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel

from scripts.proofs.part import PartResult

MAX_VIOLATIONS = 50  # of a part; the rest is counted


class PartReport(BaseModel):
    """The same as ``PartResult``, with how long it took."""

    purpose: str = ""
    commit: str = ""  # if it was run for itself, in a later run than the others
    seconds: int = 0
    rounds: int = 0
    requests: int = 0
    faults: dict[str, int] = {}
    invariants: list[str] = []
    violations: list[str] = []
    planted: dict[str, bool] = {}
    figures: list[dict[str, Any]] = []
    not_run: dict[str, str] = {}

    @classmethod
    def of(cls, result: PartResult, purpose: str, seconds: int) -> Self:
        values = {field.name: getattr(result, field.name) for field in fields(result)}
        if len(result.violations) > MAX_VIOLATIONS:
            more = f"and {len(result.violations) - MAX_VIOLATIONS} more"
            values["violations"] = [*result.violations[:MAX_VIOLATIONS], more]
        return cls(purpose=purpose, seconds=seconds, **values)

    @property
    def is_proven(self) -> bool:
        return not self.violations and all(self.planted.values())

    @property
    def was_run(self) -> bool:
        return bool(self.seconds or self.rounds or self.violations)

    def summary(self, name: str) -> str:
        counts = [
            f"{self.rounds:,} rounds",
            f"{self.requests:,} requests",
            f"{sum(self.faults.values())} faults injected",
            f"{sum(self.planted.values())} of {len(self.planted)} planted faults found",
            f"{len(self.violations)} violations",
            f"{self.seconds} s",
        ]
        lines = [f"{name}: {', '.join(counts)}"]
        lines += [f"  violation: {text}" for text in self.violations]
        lines += [f"  not found: {text}" for text, is_found in self.planted.items() if not is_found]
        lines += [f"  not run: {what}: {why}" for what, why in self.not_run.items()]
        return "\n".join(lines)


class Report(BaseModel):
    commit: str
    machine: dict[str, str]
    minutes: float
    duration_s: int = 0
    parts: dict[str, PartReport] = {}

    @property
    def is_proven(self) -> bool:
        return all(part.is_proven for part in self.parts.values())

    def with_parts_of(self, later: Self, names: Iterable[str]) -> Self:
        """Returns this report with some parts of a later run, which name the commit of that run."""
        parts = {name: later.parts[name].model_copy(update={"commit": later.commit}) for name in names}
        return self.model_copy(update={"parts": self.parts | parts})

    def as_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"


def commit() -> str:
    """Returns the commit of the checkout, and whether files differ from it."""
    try:
        name = _git("rev-parse", "--short=12", "HEAD")
        return f"{name} with changes" if _git("status", "--porcelain") else name
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def machine() -> dict[str, str]:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    return {
        "processor": f"{os.cpu_count()} x {models[0] if models else platform.machine()}",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "load at the start": f"{os.getloadavg()[0]:.1f}",
    }


def stolen_s() -> float:
    """Returns the processor time that the host of this virtual machine has given to others since the start."""
    ticks = int(Path("/proc/stat").read_text().splitlines()[0].split()[8])
    return ticks / os.sysconf("SC_CLK_TCK")
