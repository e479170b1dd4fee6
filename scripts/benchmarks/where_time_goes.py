"""Where the service's time goes: start it, apply a load of ``scripts/bench oauth``, and watch a worker with py-spy.

Two tables are printed: functions by their own time, and by the time with all that they call. Of native code only what
was called from Python shows, as the line that called it. Without py-spy (a package of the group "bench"), or without
the right to look at another process, it says so.
"""

import argparse
import shutil
import subprocess
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

from scripts.benchmarks.oauth_ours import ours
from scripts.benchmarks.oauth_work import WORK
from scripts.benchmarks.report import progress
from tests.kit import postgres

PER_SECOND = 400


def find_spy() -> str:
    here = Path(sysconfig.get_path("scripts")) / "py-spy"
    found = str(here) if here.is_file() else shutil.which("py-spy")
    if not found:
        raise SystemExit(
            "py-spy is not here, and could not be installed: pip install py-spy, for Linux on x86-64 or ARM"
        )
    return found


def watch(spy: str, pid: int, seconds: float, into: Path) -> "subprocess.Popen[str]":
    command = [spy, "record", "-p", str(pid), "-d", str(max(1, round(seconds))), "-r", str(PER_SECOND), "-f", "raw"]
    return subprocess.Popen(
        [*command, "--nonblocking", "-o", str(into)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def fold(text: str) -> tuple[Counter[str], Counter[str], int]:
    """Samples by function: its own, and with what it calls."""
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
    parser.add_argument("load", choices=WORK, help="what is asked of the service meanwhile")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--lines", type=int, default=40, help="of each table")
    parser.add_argument("--raw", type=Path, help="keep the samples, as flame graphs are made from")
    given = parser.parse_args()
    spy = find_spy()
    with tempfile.TemporaryDirectory() as folder, postgres.running() as database:
        with ours(database.fresh()) as (server, target):
            samples = given.raw or Path(folder) / "samples"
            progress("a first look …")
            WORK[given.load](target, given.connections, 1.0)()
            load = WORK[given.load](target, given.connections, given.seconds + 1)
            progress(f"{given.load} …")
            watching = watch(spy, server.workers()[0], given.seconds, samples)
            tally = load()
            _, complaint = watching.communicate()
        if not samples.exists():
            raise SystemExit(f"py-spy could not look at the worker: {complaint.strip()}")
        own, whole, total = fold(samples.read_text())
    progress("")
    print(f"{given.load}: {len(tally.took) / tally.seconds:,.0f} a second, {total} samples")
    show("by itself", own, total, given.lines)
    show("with what it calls", whole, total, given.lines)


if __name__ == "__main__":
    main()
