"""Random inputs for every parser of untrusted data: each must refuse with its own errors, within 20 ms."""

import tempfile
from pathlib import Path

import trio

from scripts.proofs.part import PartResult, Progress
from tests.fuzz.__main__ import Session
from tests.fuzz.targets import TARGETS


def run(minutes: float, progress: Progress) -> PartResult:
    return trio.run(_run, minutes, progress)  # a parser of frames asks for the time of the event loop


async def _run(minutes: float, progress: Progress) -> PartResult:
    result = PartResult(invariants=["A parser raises nothing but its refusals.", "No input costs more than 20 ms."])
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        for number, target in enumerate(TARGETS.values()):
            progress(f"{number} of {len(TARGETS)}: {target.name}, {result.rounds:,} inputs …")
            run = session.run(target, seconds=minutes * 60 / len(TARGETS))
            result.rounds += run.inputs
            result.figures.append({"Parser": target.name, "Inputs": run.inputs, "Findings": len(run.findings)})
    result.violations = [str(finding) for finding in session.findings]
    return result
