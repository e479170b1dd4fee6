"""The checker finds each fault that is planted in the program."""

from pathlib import Path

import pytest

from tests.histories.invariants import INVARIANTS
from tests.histories.planted import edited_modules, find_planted_faults
from tests.histories.planted_faults import PLANTED_FAULTS
from tests.kit.long_tests import takes_long


@takes_long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", PLANTED_FAULTS)
def test_planted_faults_are_found(group: str, tmp_path: Path) -> None:
    found = find_planted_faults(group, tmp_path)
    assert found == dict.fromkeys(found, True)


def test_each_invariant_has_a_planted_fault() -> None:
    broken = [fault.invariant for faults in PLANTED_FAULTS.values() for fault in faults]
    assert sorted(broken) == sorted(invariant.text for invariant in INVARIANTS)
    for faults in PLANTED_FAULTS.values():
        assert edited_modules(faults)  # the texts that are replaced exist
