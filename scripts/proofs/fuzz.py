"""Random inputs for every parser of untrusted data: each must refuse with its own errors, within 20 ms.
"Long runs" are the inputs that scripts/fuzz parsers has given to a parser.
"""

import math
import os
import random
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import trio

from scripts.proofs.part import PartResult, Progress
from tests.fuzz.__main__ import FOLDER, Session
from tests.fuzz.runner import Run
from tests.fuzz.targets import TARGETS

KEPT = Path("var/fuzz")  # inputs that are findings


def run(minutes: float, progress: Progress) -> PartResult:
    """Gives each parser the same time, on all processors. Each run tries other inputs."""
    result = PartResult(invariants=["A parser raises nothing but its refusals.", "No input costs more than 20 ms."])
    processes = min(os.cpu_count() or 1, len(TARGETS))
    seconds = minutes * 60 / math.ceil(len(TARGETS) / processes)
    seed = random.randrange(1_000_000)
    figures = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        try:
            running = {pool.submit(_fuzz, name, seconds, seed): name for name in TARGETS}
            for done in as_completed(running):
                inputs, findings = done.result()
                result.rounds += inputs
                result.violations += findings
                name = running[done]
                long_runs = Session(FOLDER).count(name)
                figures[name] = {"Parser": name, "Inputs": inputs, "Findings": len(findings), "Long runs": long_runs}
                progress(f"{len(figures)} of {len(TARGETS)} parsers, {result.rounds:,} inputs …")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    result.figures = [figures[name] for name in TARGETS]
    return result


def _fuzz(name: str, seconds: float, seed: int) -> tuple[int, list[str]]:
    """Returns the number of inputs, and the findings. Their inputs are kept."""

    async def fuzz() -> Run:  # a parser of frames asks for the time of the event loop
        return session.run(TARGETS[name], seconds=seconds, seed=seed)

    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        inputs = trio.run(fuzz).inputs
        kept = KEPT / str(seed)
        if session.findings:
            kept.mkdir(parents=True, exist_ok=True)
            for path in Path(folder).glob(f"{name}-*"):
                shutil.copy(path, kept)
        return inputs, [f"{finding} ({kept})" for finding in session.findings]
