"""Where the CPU time of each call goes: the calls of the guard, the redemption of a code and a whole login.

Each call is made over several connections, and costs what it costs under load. The shares are those of all its CPU
time, with that of PostgreSQL; the layers of a worker are told apart by a sampler (profiled_service.py).
"""

import json
import os
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scripts.benchmarks.guard_calls import Request, calls, cpu_ns
from scripts.benchmarks.http_clients import Answer, BenchmarkError, RequestFailed, Scenario, Tally, request, run
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.oauth_work import WORK
from scripts.benchmarks.profile_layers import LAYERS
from scripts.benchmarks.profiled_service import FOLDER_VARIABLE
from scripts.benchmarks.report import Steps, process_tree, progress
from tests.kit import postgres
from tests.kit.server import Server

# The program, also if another installation of the package comes first.
PROGRAM = (sys.executable, "-m", "scripts.benchmarks.profiled_service")
MAX_ROUNDS = 20
DATABASE = "database"
COLUMNS = (*LAYERS[:4], DATABASE, *LAYERS[4:])

Load = Callable[[], Tally]


class Usage(NamedTuple):
    """What a call took, in microseconds of CPU time."""

    by_layer: Mapping[str, float]
    database: float

    @property
    def all(self) -> float:
        return sum(self.by_layer.values()) + self.database


class Profile:
    """Measures loads of a running service whose workers write samples to a folder."""

    def __init__(self, server: Server, database_pid: int, folder: Path) -> None:
        self._server = server
        self._database_pid = database_pid
        self._folder = folder

    def measure(self, prepare: Callable[[], Load], cpu_s: float) -> Usage:
        """Repeats a load until the workers have used so much CPU time. Its preparation does not count."""
        prepare()()
        workers, database = self._server.workers(), process_tree(self._database_pid)
        answers, used, used_by_database, samples = 0, 0.0, 0.0, Counter[str]()
        for _ in range(MAX_ROUNDS):
            load = prepare()
            began, database_began, known = _cpu_us(workers), _cpu_us(database), self._samples(workers)
            tally = load()
            used += _cpu_us(workers) - began
            used_by_database += _cpu_us(database) - database_began
            samples += self._samples(workers) - known
            answers += len(tally.took)
            if not tally.took:
                raise BenchmarkError(f"no request succeeded: {tally.failures[:1]}")
            if used > cpu_s * 1e6:
                break
        per_sample = used / samples.total() / answers  # the sampler misses the last moments
        return Usage({layer: us * per_sample for layer, us in samples.items()}, used_by_database / answers)

    def _samples(self, workers: Iterable[int]) -> Counter[str]:
        found: Counter[str] = Counter()
        for pid in workers:
            for line in (self._folder / str(pid)).read_text().splitlines():
                layer, _, us = line.partition(" ")
                found[layer] += int(us)
        return found


def _cpu_us(pids: Iterable[int]) -> float:
    return sum(cpu_ns(pid) for pid in pids if Path(f"/proc/{pid}").exists()) / 1e3


def loads(server: Server, target: Target, connections: int, seconds: float) -> dict[str, Callable[[], Load]]:
    """Returns what prepares the load of each call."""
    prepared: dict[str, Callable[[], Load]] = {}
    for name, call in calls(server, target).items():
        prepared[name] = (lambda one: lambda: _repeated(target, one, connections, seconds))(next(iter(call())))
    for name, work in {"refresh": "refresh", "redemption": "redeem", "whole login": "flow"}.items():
        prepared[name] = (lambda one: lambda: WORK[one](target, connections, seconds))(work)
    return prepared


def _repeated(target: Target, asked: Request, connections: int, seconds: float) -> Load:
    text = request(asked.method, asked.path, asked.headers or {}, asked.body)

    def ask(_: int) -> Scenario:
        answer: Answer = yield text
        if answer.status != 200:
            raise RequestFailed(f"{answer.status} {answer.body[:200]!r}")

    return lambda: run(target.base_url, connections, seconds, ask)


def row(name: str, usage: Usage) -> dict[str, Any]:
    parts = {**usage.by_layer, DATABASE: usage.database}
    shares = {column: f"{parts.get(column, 0) / usage.all:.0%}" for column in COLUMNS}
    return {"call": name, "CPU us": round(usage.all), **shares}


def machine() -> str:
    """Returns the kind and the number of the processors, and the versions."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{os.cpu_count()} x {model or 'processor'}, {platform.machine()}, Python {platform.python_version()}"


def show_shares(names: Iterable[str], connections: int, cpu_s: float, out: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder, postgres.running() as database:
        # With a worker per core, all signatures are made on the event loop, where the sampler sees them.
        os.environ[FOLDER_VARIABLE] = folder
        settings = {"SSO_WORKERS": str(os.cpu_count()), "SSO_RATE_GETGSID": "0"}
        with running_service(database.fresh(), PROGRAM, **settings) as (server, target):
            profile = Profile(server, database.pid(), Path(folder))
            chosen = loads(server, target, connections, seconds=1.0)
            steps, rows = Steps(len(chosen)), []
            for name, prepare in chosen.items():
                steps.next(name)
                if not names or name in names:
                    rows.append(row(name, profile.measure(prepare, cpu_s)))
    progress("")
    print(rst_table(rows))
    print(f"\n{connections} connections, {machine()}. Threads hash passwords.")
    if out:
        out.write_text(json.dumps(rows, indent=2) + "\n")


def rst_table(rows: list[dict[str, Any]]) -> str:
    """Returns the rows as a table of the documentation."""
    lines = [
        list(rows[0]),
        *([f"{value:,}" if isinstance(value, int) else value for value in row.values()] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    border = "  ".join("=" * width for width in widths)
    return "\n".join([border, texts[0], border, *texts[1:], border])
