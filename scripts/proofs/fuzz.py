"""Random inputs for every parser of untrusted data: each must refuse with its own errors, within 20 ms."""

import os
import random
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import trio

from scripts.proofs.part import PartResult, Progress
from tests.fuzz.__main__ import Session
from tests.fuzz.runner import Run
from tests.fuzz.targets import TARGETS


def run(minutes: float, progress: Progress) -> PartResult:
    """Gives each parser the same time, on all processors. Each run tries other inputs."""
    result = PartResult(invariants=["A parser raises nothing but its refusals.", "No input costs more than 20 ms."])
    processes = os.cpu_count() or 1
    seconds = minutes * 60 * processes / len(TARGETS)
    figures = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        seed = random.randrange(1_000_000)
        running = {pool.submit(_fuzz, name, seconds, seed): name for name in TARGETS}
        for done in as_completed(running):
            inputs, findings = done.result()
            result.rounds += inputs
            result.violations += findings
            figures[running[done]] = {"Parser": running[done], "Inputs": inputs, "Findings": len(findings)}
            progress(f"{len(figures)} of {len(TARGETS)} parsers, {result.rounds:,} inputs …")
    result.figures = [figures[name] for name in TARGETS]
    return result


def _fuzz(name: str, seconds: float, seed: int) -> tuple[int, list[str]]:
    """Returns the number of inputs, and the findings."""

    async def fuzz() -> Run:  # a parser of frames asks for the time of the event loop
        return session.run(TARGETS[name], seconds=seconds, seed=seed)

    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        return trio.run(fuzz).inputs, [str(finding) for finding in session.findings]
