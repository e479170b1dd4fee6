"""Runs mutants: ``python -m tests.mutants [MODULE…]``, where a module is a part of its path. Prints the survivors."""

import argparse
import re
import sys
from contextlib import nullcontext
from pathlib import Path

from tests.kit.prepared_data import prepared_data
from tests.mutants.runner import score, shared_postgres, warm_up
from tests.mutants.survivors import equivalent_mutants
from tests.mutants.table import MODULES

LEAST_SHARE = 0.9


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/mutants", description="Changes modules that decide; tests must notice."
    )
    parser.add_argument("modules", nargs="*", help="parts of paths, such as core/jwt; all by default")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth mutant")
    options = parser.parse_args()
    chosen = [name for name in MODULES if not options.modules or any(part in name for part in options.modules)]
    warm_up(sorted({test for name in chosen for test in MODULES[name]}))
    scores = []
    is_needed = any(needs_database(MODULES[name]) for name in chosen)
    with prepared_data(), shared_postgres() if is_needed else nullcontext():
        for name in chosen:
            result = score(name, MODULES[name], equivalent_mutants(name), every=options.every)
            scores.append(result)
            print(f"\r{name}: {result.killed} of {result.total} killed ({result.share:.0%}), {result.seconds:.0f} s")
            for survivor in result.survivors:
                print(f"    {survivor}", flush=True)
    return int(any(result.share < LEAST_SHARE for result in scores))


def needs_database(tests: tuple[str, ...]) -> bool:
    files = (
        file for test in tests for file in (Path(test).rglob("test_*.py") if Path(test).is_dir() else [Path(test)])
    )
    return any(re.search(r"\b(services|database|dsn)\b", file.read_text()) for file in files)


if __name__ == "__main__":
    sys.exit(main())
