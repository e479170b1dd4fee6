"""Concurrent clients at two nodes while faults happen: the history of their calls proves what must never happen."""

import os
import random
from pathlib import Path

import pytest

from tests.histories.actors import PAUSE_S, acting
from tests.histories.faults import Faults
from tests.histories.history import Outcome
from tests.histories.invariants import unproven, violations
from tests.histories.world import world

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "0"))
SECONDS = 30.0 * ROUNDS or 3.0
USUAL_PAUSE_S = 0.5  # a usual run leaves the processor to other tests
pytestmark = pytest.mark.timeout(600 + 2 * int(SECONDS))


def test_history_with_faults(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    with world(tmp_path, moves_clocks=ROUNDS > 0) as running:
        faults = Faults(running, random.Random(seed))
        with acting(running, PAUSE_S if ROUNDS else USUAL_PAUSE_S) as actors:
            faults.inject(SECONDS, until=lambda: not unproven(running))
        found = violations(running)
    rounds = {actor.name: (actor.rounds, dict(actor.interruptions)) for actor in actors}
    unknown = running.history.count(Outcome.UNKNOWN)
    print(f"seed {seed}: {len(running.history)} calls, {unknown} without an answer, {dict(faults.injected)}, {rounds}")
    assert found == []
    assert unproven(running) == []
