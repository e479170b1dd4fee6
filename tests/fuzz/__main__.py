"""The long form: ``python -m tests.fuzz [TARGET…] [--inputs N | --minutes M]``.

The number of inputs that each target has had is kept in a file, so an interrupted run continues where it was, and
several runs at a time can have different targets. An input that is a finding is kept beside it; ``--keep`` adds
it to the corpus of its target, once it is repaired.
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path

import trio

from tests.fuzz.growth import grow
from tests.fuzz.runner import Finding, Run, examine
from tests.fuzz.target import CORPUS, Target, write_corpus
from tests.fuzz.targets import TARGETS

FOLDER = Path(".fuzz")
SHOWN_S = 5.0


class Session:
    """The counts of inputs and the findings of a folder, which other sessions may have begun."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.findings: list[Finding] = []
        self._shown = 0.0

    def count(self, name: str) -> int:
        """Returns the number of inputs that a target has had."""
        file = self._count_file(name)
        return int(file.read_text()) if file.exists() else 0

    def run(self, target: Target, *, inputs: int = 0, seconds: float = 0, seed: int = 0) -> Run:
        """Tries inputs until the target has had as many in all, or for so long."""
        self._folder.mkdir(parents=True, exist_ok=True)
        run = Run(target, seed, self.count(target.name))
        if not inputs or inputs > run.inputs:
            run.continue_for(inputs=inputs and inputs - run.inputs, seconds=seconds, progress=self._show)
        self._save(run)
        for finding in run.findings.values():
            self.findings.append(finding)
            digest = hashlib.sha256(finding.data).hexdigest()[:12]
            (self._folder / f"{target.name}-{digest}").write_bytes(finding.data)
        return run

    def _show(self, run: Run) -> None:
        if time.monotonic() - self._shown > SHOWN_S:
            self._shown = time.monotonic()
            self._save(run)
            print(f"{run.target.name}: {run.inputs:,} inputs, {len(run.findings)} findings", file=sys.stderr)

    def _save(self, run: Run) -> None:
        file = self._count_file(run.target.name)
        new = file.with_suffix(".new")
        new.write_text(str(run.inputs))
        new.replace(file)  # the proof may read it at any time

    def _count_file(self, name: str) -> Path:
        return self._folder / f"{name}.count"


def keep(paths: list[Path]) -> None:
    for path in paths:
        target = TARGETS[path.name.rpartition("-")[0]]
        finding = examine(target, path.read_bytes())
        if finding is not None:
            sys.exit(f"still a finding: {finding}")
        write_corpus(CORPUS / f"{target.name}.txt", {*target.corpus, path.read_bytes()})


async def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/fuzz parsers", description="Random inputs for the parsers.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--inputs", type=int, default=0, help="for each target, those of earlier runs included")
    length.add_argument("--minutes", type=float, default=5.0, help="for all targets together (5)")
    parser.add_argument("--grow", action="store_true", help="look for inputs that reach new code, and keep them")
    parser.add_argument("--keep", nargs="+", type=Path, default=[], help="add repaired findings to the corpora")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if options.keep:
        keep(options.keep)
        return
    names, session = options.targets or list(TARGETS), Session(FOLDER)
    seconds = options.minutes * 60 / len(names)
    for name in names:
        if options.grow:
            print(f"{name:18} {grow(TARGETS[name], seconds)} new inputs in the corpus")
            continue
        run = session.run(TARGETS[name], inputs=options.inputs, seconds=seconds)
        print(f"{name:18} {run.inputs:12,} inputs, {len(run.findings)} findings")
    for finding in session.findings:
        print(finding)
    sys.exit(bool(session.findings))


if __name__ == "__main__":
    trio.run(main)  # a parser of frames asks for the time of the event loop
