"""Concurrent clients at two nodes while faults happen: the history of their calls proves what never happened."""

import random
import shutil
import tempfile
from pathlib import Path

import orjson

from scripts.proofs.part import Deadline, PartResult, Progress
from tests.histories.actors import acting
from tests.histories.faults import Faults
from tests.histories.history import Outcome
from tests.histories.invariants import INVARIANTS, unproven, violations
from tests.histories.planted import find_planted_faults
from tests.histories.planted_faults import PLANTED_FAULTS
from tests.histories.world import World, world

KEPT = Path("var/histories")  # of a violation
PLANTED_SHARE = 0.5  # of the minutes, at most; the rest is for histories
HISTORY_MINUTES = 5.0  # of one history; then another one begins, with new nodes


def run(minutes: float, progress: Progress) -> PartResult:
    deadline = Deadline(minutes)
    result = PartResult(invariants=[invariant.text for invariant in INVARIANTS])
    _find_planted_faults(Deadline(minutes * PLANTED_SHARE), result, progress)
    while not (deadline.is_over or result.violations):
        _run_history(min(HISTORY_MINUTES, deadline.seconds_left / 60), result, progress)
    return result


def _find_planted_faults(deadline: Deadline, result: PartResult, progress: Progress) -> None:
    for group, faults in PLANTED_FAULTS.items():
        if deadline.is_over:
            result.not_run |= {f"planted fault: {fault.name}": "the time was over" for fault in faults}
            continue
        progress(f"{deadline}: planted faults: {group} …")
        with tempfile.TemporaryDirectory() as folder:
            result.planted |= find_planted_faults(group, Path(folder))


def _run_history(minutes: float, result: PartResult, progress: Progress) -> None:
    seed = random.randrange(1_000_000)
    with tempfile.TemporaryDirectory() as folder, world(Path(folder)) as running:
        deadline, faults = Deadline(minutes), Faults(running, random.Random(seed))
        with acting(running):
            while not deadline.is_over:
                count = sum(faults.injected.values())
                progress(f"{deadline}: {len(running.history)} calls, {count} faults …")
                faults.inject(min(15.0, deadline.seconds_left), until=lambda: True)
            faults.inject(0.0, until=lambda: not unproven(running))
        found = violations(running)
        result.rounds += 1
        if found:
            kept = _keep(running, Path(folder), seed)
            result.violations += [f"{text} ({kept})" for text in found]
        result.not_run |= {f"seed {seed}: {name}": "never succeeded" for name in unproven(running)}
        result.not_run |= {f"fault: {kind}": why for kind, why in faults.not_run.items()}
        for kind, times in faults.injected.items():
            result.faults[kind] = result.faults.get(kind, 0) + times
        result.figures.append(
            {
                "Seed": seed,
                "Calls": len(running.history),
                "Without an answer": running.history.count(Outcome.UNKNOWN),
                "Faults": sum(faults.injected.values()),
            }
        )


def _keep(running: World, folder: Path, seed: int) -> Path:
    """Keeps the calls, ordered by their begin, and the logs of the nodes. Returns their folder."""
    kept = KEPT / str(seed)
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "calls.jsonl").write_bytes(b"".join(orjson.dumps(call) + b"\n" for call in running.history.all_calls()))
    for log in folder.glob("node*/server.log"):
        shutil.copy(log, kept / f"{log.parent.name}.log")
    return kept
