"""Load by wrk, which needs little CPU time, or by our own client if wrk is not installed."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.benchmarks.http_clients import BenchmarkError, Scenario, Tally, run

HERE = Path(__file__).parent
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


class WrkTally(Tally):
    """A result with the quantiles that wrk reports; it does not report each response."""

    def __init__(self, seconds: float, answers: int, quantiles: dict[float, float], bad: int) -> None:
        super().__init__(seconds, [0.0] * answers, ["not 200"] * bad)
        self._quantiles = quantiles

    def quantile(self, share: float) -> float:
        return self._quantiles[share]


def load(
    base_url: str,
    path: str,
    connections: int,
    seconds: float,
    ask: Callable[[int], Scenario],
    script: str = "",
    tokens: Sequence[str] = (),
    **settings: str,
) -> Tally:
    """Generates a load with a script of wrk, or with the equivalent scenario."""
    wrk = shutil.which("wrk")
    if not wrk:
        return run(base_url, connections, seconds, ask)
    with _written(tokens) as file:
        command = [wrk, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--latency", "--timeout", "15s"]
        command += ["-s", str(HERE / script)] if script else []
        environment = {**os.environ, "TOKENS": str(file), "ASK_PATH": path, **settings}
        done = subprocess.run([*command, base_url + path], env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BenchmarkError(f"wrk: {(done.stdout + done.stderr).strip()[-200:]}")
    return _read(done.stdout)


@contextmanager
def _written(lines: Sequence[str]) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        yield Path(file.name)


def _read(text: str) -> Tally:
    def number(pattern: str) -> re.Match[str] | None:
        return re.search(pattern, text, re.MULTILINE)

    def seconds(pattern: str) -> float:
        found = number(pattern)
        assert found, text
        return float(found[1]) * _UNITS[found[2]]

    total = number(r"(\d+) requests in")
    bad = number(r"Non-2xx or 3xx responses: (\d+)")
    lost = number(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
    assert total, text
    failed = int(bad[1]) if bad else 0
    quantiles = {0.5: seconds(r"^\s+50%\s+([\d.]+)(us|ms|s|m)"), 0.99: seconds(r"^\s+99%\s+([\d.]+)(us|ms|s|m)")}
    took = seconds(r"requests in ([\d.]+)(us|ms|s|m)")
    return WrkTally(took, int(total[1]) - failed, quantiles, failed + (sum(map(int, lost.groups())) if lost else 0))
