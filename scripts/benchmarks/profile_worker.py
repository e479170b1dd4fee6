"""Profiles the service.

Without a kind of load it prints one table: the CPU time of each call, and the shares of Trio, Quart, HTTP, the SQL
driver, PostgreSQL, own code, signatures and JSON. With a kind of load of ``scripts/bench oauth`` it samples a worker
with py-spy and prints two tables: functions by their own time, and by the time including their callees. Native code
appears as the Python line that called it. That needs py-spy (a package of the group "bench") and permission to trace
processes.
"""

import argparse
import shutil
import subprocess
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.oauth_work import WORK
from scripts.benchmarks.profile_shares import show_shares
from scripts.benchmarks.report import Steps, progress
from tests.kit import postgres

PER_SECOND = 400


def find_spy() -> str:
    installed = Path(sysconfig.get_path("scripts")) / "py-spy"
    path = str(installed) if installed.is_file() else shutil.which("py-spy")
    if not path:
        raise SystemExit("py-spy is not installed: pip install py-spy (Linux on x86-64 or ARM)")
    return path


def watch(spy: str, pid: int, seconds: float, into: Path) -> "subprocess.Popen[str]":
    command = [spy, "record", "-p", str(pid), "-d", str(max(1, round(seconds))), "-r", str(PER_SECOND), "-f", "raw"]
    return subprocess.Popen(
        [*command, "--nonblocking", "-o", str(into)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def fold(text: str) -> tuple[Counter[str], Counter[str], int]:
    """Counts the samples by function: own, and including callees."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    total = 0
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        names = [frame.rpartition(":")[0] + ")" if ":" in frame else frame for frame in stack.split(";")]
        own[names[-1]] += int(count)
        whole.update(dict.fromkeys(names, int(count)))
        total += int(count)
    return own, whole, total


def show(title: str, counted: Counter[str], total: int, lines: int) -> None:
    print(f"\n{title}")
    for name, count in counted.most_common(lines):
        print(f"{count / total:7.1%}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/profile", description=__doc__)
    parser.add_argument("load", nargs="?", choices=WORK, help="kind of load; without it, the shares of all calls")
    parser.add_argument("--seconds", type=float, default=6.0, help="of CPU time for each of all calls")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--lines", type=int, default=40, help="lines of each table")
    parser.add_argument("--call", action="append", help="only this call, of the shares of all calls; may be repeated")
    parser.add_argument("--out", type=Path, help="write the shares to this JSON file")
    parser.add_argument("--raw", type=Path, help="write the samples to this file, for flame graphs")
    options = parser.parse_args()
    if options.load is None:
        show_shares(options.call or (), options.connections, options.seconds, options.out)
    else:
        sample_worker(options)


def sample_worker(options: argparse.Namespace) -> None:
    spy = find_spy()
    steps = Steps(2)
    with tempfile.TemporaryDirectory() as folder, postgres.running() as database:
        with running_service(database.fresh()) as (server, target):
            samples = options.raw or Path(folder) / "samples"
            steps.next("warming up")
            WORK[options.load](target, options.connections, 1.0)()
            load = WORK[options.load](target, options.connections, options.seconds + 1)
            steps.next(f"{options.load} for {options.seconds:.0f} s")
            watching = watch(spy, server.workers()[0], options.seconds, samples)
            tally = load()
            _, complaint = watching.communicate()
        if not samples.exists():
            raise SystemExit(f"py-spy could not trace the worker: {complaint.strip()}")
        own, whole, total = fold(samples.read_text())
    progress("")
    print(f"{options.load}: {len(tally.took) / tally.seconds:,.0f} a second, {total} samples")
    show("own time", own, total, options.lines)
    show("time including callees", whole, total, options.lines)


if __name__ == "__main__":
    main()
