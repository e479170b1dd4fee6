"""Measures the HTTP servers: a constant JSON response of a bare ASGI application and through Quart, with the built-in
server and with hypercorn, in turns; and the memory of a held poll.

Compare the CPU time of the server: requests per second also depend on the client and the machine.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.benchmarks.report import Steps, arguments, cpu_seconds, show

SERVERS = ("builtin", "hypercorn")
APPLICATIONS = ("bare", "quart")
CONNECTIONS = 32
WARM_S = 0.5
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Subject:
    kind: str
    what: str
    process: subprocess.Popen[str]
    port: int
    us: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)

    def measure(self, seconds: float) -> None:
        before = cpu_seconds([self.process.pid])
        answers = load(self.port, seconds)
        self.us.append((cpu_seconds([self.process.pid]) - before) / answers * 1e6)
        self.per_second.append(answers / seconds)

    def memory(self) -> int:
        """Returns the resident memory in bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE


@contextmanager
def serving(kind: str, what: str) -> Iterator[Subject]:
    command = [sys.executable, "-m", "scripts.benchmarks.http_server", kind, what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Subject(kind, what, process, int(process.stdout.readline()))
        finally:
            process.kill()


def load(port: int, seconds: float) -> int:
    """Returns the number of responses. Uses wrk if it is installed, which needs less CPU time than our own client."""
    if wrk := shutil.which("wrk"):
        command = [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", f"http://127.0.0.1:{port}/"]
        found = re.search(r"(\d+) requests in", output(command))
        assert found is not None
        return int(found[1])
    return int(output([sys.executable, "-m", "scripts.benchmarks.http_load", "busy", str(port), "32", str(seconds)]))


def output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def answers(rounds: int, seconds: float, steps: Steps) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        subjects = {(kind, what): stack.enter_context(serving(kind, what)) for what in APPLICATIONS for kind in SERVERS}
        for subject in subjects.values():
            load(subject.port, WARM_S)
        for number in range(rounds):
            for subject in subjects.values():
                steps.next(f"round {number + 1}, {subject.kind}, {subject.what}")
                subject.measure(seconds)
        for what in APPLICATIONS:
            builtin, hypercorn = subjects["builtin", what], subjects["hypercorn", what]
            ratios = [theirs / ours for ours, theirs in zip(builtin.us, hypercorn.us, strict=True)]
            for subject in (builtin, hypercorn):
                row = {"application": what, "server": subject.kind, "CPU us": statistics.median(subject.us)}
                row |= {"CPU us, spread": spread(subject.us), "per second": statistics.median(subject.per_second)}
                if subject is builtin:
                    row |= {"ratio": statistics.median(ratios), "ratio, spread": spread(ratios)}
                rows.append(row)
    return rows


def spread(values: list[float]) -> str:
    return f"{min(values):,.1f} - {max(values):,.1f}"


def held(kind: str, count: int, steps: Steps) -> dict[str, Any]:
    steps.next(f"{count:,} polls held by {kind}")
    with serving(kind, "quart") as subject:
        load(subject.port, WARM_S)
        before, worked = subject.memory(), cpu_seconds([subject.process.pid])
        command = [sys.executable, "-m", "scripts.benchmarks.http_load", "hold", str(subject.port), str(count)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            seconds = float(client.stdout.readline())
            each = (subject.memory() - before) / count
            worked = (cpu_seconds([subject.process.pid]) - worked) / count * 1e6
            client.kill()
    row = {"application": "quart", "server": kind, "CPU us": worked, "held": count}
    return row | {"accepted in s": seconds, "kB each": each / 1e3}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--held", type=int, default=10_000, help="held polls of the built-in server; hypercorn gets a tenth"
    )
    options = parser.parse_args()
    steps = Steps(options.rounds * len(SERVERS) * len(APPLICATIONS) + len(SERVERS))
    rows = answers(options.rounds, options.seconds, steps)
    rows += [held("builtin", options.held, steps), held("hypercorn", options.held // 10, steps)]
    names = ("application", "server", "CPU us", "CPU us, spread", "per second", "ratio", "ratio, spread", "held",
             "accepted in s", "kB each")  # fmt: skip
    show([{name: row.get(name) for name in names} for row in rows], options.out)


if __name__ == "__main__":
    main()
