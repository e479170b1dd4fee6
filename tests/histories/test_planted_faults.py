"""The checker finds each fault that is planted in the program."""

from pathlib import Path

import pytest

from tests.histories.actors import acting
from tests.histories.invariants import violations
from tests.histories.planted import PLANTED_FAULTS, PlantedFault
from tests.histories.world import world
from tests.kit.long_tests import takes_long
from tests.kit.server import until

FOUND_S = 120.0  # on a machine that is very slow


@takes_long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", PLANTED_FAULTS, ids=lambda fault: fault.name)
def test_planted_fault_is_found(fault: PlantedFault, tmp_path: Path) -> None:
    program = fault.program(tmp_path)
    with world(tmp_path / "nodes", program) as running:

        def found() -> list[str]:
            return [text for text in violations(running) if text.startswith(fault.violation)]

        with acting(running):
            until(found, FOUND_S)
        assert found()
