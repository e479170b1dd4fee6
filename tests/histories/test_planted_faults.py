"""The checker finds each fault that is planted in the program."""

from pathlib import Path

import pytest

from tests.histories.planted import PLANTED_FAULTS, PlantedFault
from tests.kit.long_tests import takes_long


@takes_long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", PLANTED_FAULTS, ids=lambda fault: fault.name)
def test_planted_fault_is_found(fault: PlantedFault, tmp_path: Path) -> None:
    assert fault.is_found(tmp_path)
