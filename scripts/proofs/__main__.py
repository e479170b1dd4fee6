"""Runs parts of the proof one after the other and writes a report: ``scripts/prove [PART …|all] --minutes N``.

The exit status is 1 if a violation was found or a planted fault was not.
"""

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from scripts.benchmarks.report import progress
from scripts.proofs.page import render
from scripts.proofs.part import PartResult
from scripts.proofs.report import PartReport, Report, commit, machine, stolen_s
from scripts.proofs.request_counter import counted_requests
from tests.kit.prepared_data import prepared_data

# Parts in the order in which they run, with their shares of the minutes.
SHARES = {"models": 4, "histories": 10, "secrets": 1, "timing": 3, "overload": 1, "soak": 3, "fuzz": 4, "mutants": 4}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/prove", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all, or some of: {', '.join(SHARES)}")
    parser.add_argument("--minutes", type=float, default=10, help="divided among the parts (default: 10)")
    parser.add_argument("--out", type=Path, default=Path("var/proven.json"), help="the report; its page is next to it")
    parser.add_argument("--add", action="store_true", help="keep the other parts of the report that --out has")
    options = parser.parse_args()
    names = list(SHARES) if options.parts in ([], ["all"]) else list(dict.fromkeys(options.parts))
    if unknown := set(names) - SHARES.keys():
        parser.error(f"{', '.join(sorted(unknown))}: expected all, or some of {', '.join(SHARES)}")
    if options.minutes <= 0:
        parser.error("--minutes: expected more than 0")
    for number in (signal.SIGTERM, signal.SIGINT):  # the servers of a part end with it
        signal.signal(number, lambda *_: sys.exit("stopped"))
    earlier = Report.model_validate_json(options.out.read_text()) if options.add else None
    with prepared_data():
        report = prove(names, options.minutes)
    if earlier:
        report = earlier.with_parts_of(report, names)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report.as_json())
    options.out.with_suffix(".rst").write_text(render(report))
    print(f"written: {options.out} and {options.out.with_suffix('.rst')}")
    return 0 if report.is_proven else 1


def prove(names: Iterable[str], minutes: float) -> Report:
    begin, stolen_before = time.monotonic(), stolen_s()
    report = Report(commit=commit(), machine=machine(), minutes=minutes)
    remaining = {name: SHARES[name] for name in names}
    while remaining:
        # A part that ends early leaves its time to the others.
        left = max(minutes - (time.monotonic() - begin) / 60, 0.5)
        name = next(iter(remaining))
        share = left * remaining[name] / sum(remaining.values())
        del remaining[name]
        part = report.parts[name] = _run(name, share)
        progress("")
        print(part.summary(name), flush=True)
    asked = set(report.parts)
    report.parts |= {name: PartReport(not_run={"all": "was not asked for"}) for name in SHARES if name not in asked}
    report.duration_s = round(time.monotonic() - begin)
    stolen = (stolen_s() - stolen_before) / (max(report.duration_s, 1) * (os.cpu_count() or 1))
    report.machine["processor time that the host took away"] = f"{stolen:.0%}"
    return report


def _run(name: str, minutes: float) -> PartReport:
    begin = time.monotonic()
    purpose = ""
    with counted_requests() as sent:
        try:
            module = import_module(f"scripts.proofs.{name}")
            purpose = " ".join((module.__doc__ or "").partition("\n\n")[0].split())
            result: PartResult = module.run(minutes, lambda text: progress(f"{name}: {text}"))
        except Exception as error:
            traceback.print_exc()
            result = PartResult(violations=[f"the part failed: {type(error).__name__}: {error}"])
    result.requests = result.requests or sent()
    return PartReport.of(result, purpose, round(time.monotonic() - begin))


if __name__ == "__main__":
    sys.exit(main())
