"""Shared by the benchmarks: progress line, result table, JSON file, CPU time and memory of processes."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def arguments(description: str) -> argparse.ArgumentParser:
    """Returns the parser of a benchmark. From now on SIGTERM also ends the servers that the benchmark has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds per measurement")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    return parser


def progress(text: str) -> None:
    """Shows what is being done, on a terminal."""
    if sys.stderr.isatty():
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        sys.stderr.write(f"\r\033[K{text[: columns - 1]}")
        sys.stderr.flush()


class Steps:
    """Shows which one of several measurements is being made: "2 of 12: userinfo …"."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0
        self._what = ""
        progress("starting …")

    def next(self, what: str) -> None:
        self._number += 1
        self._what = what
        progress(f"{self._number} of {self._total}: {what} …")

    def detail(self, text: str) -> None:
        progress(f"{self._number} of {self._total}: {self._what}: {text} …")


def cpu_seconds(pids: Iterable[int]) -> float:
    """Returns user and system time of the processes that still run."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / TICK


def private_kb(pids: Iterable[int]) -> int:
    """Returns the private memory of the processes, which would be freed if they ended."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(("Private_Clean", "Private_Dirty")):
                total += int(line.split()[1])
    return total


def resident_mb(pids: Iterable[int]) -> float:
    """Returns the resident memory of the processes; shared pages are counted for each process."""
    pages = 0
    for pid in pids:
        with suppress(OSError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE / 2**20


def show(rows: list[dict[str, Any]], out: Path | None) -> None:
    progress("")
    names = sorted(dict.fromkeys(name for row in rows for name in row), key=lambda name: name == "note")  # notes last
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[at]) for line in cells)) for at, name in enumerate(names)]
    for line in ([*names], *cells):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    if out:
        out.write_text(json.dumps(rows, indent=2) + "\n")


def _cell(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else "" if value is None else str(value)


def process_tree(pid: int) -> list[int]:
    """Returns a process and its current descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(folder.name))
    tree = [pid]
    for member in tree:
        tree += children.get(member, [])
    return tree
