"""Faults that are planted in a copy of the program. A checker that finds nothing then is of no use.

The faults of a group are planted in the same copy, and each must be found.
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.histories.actors import acting
from tests.histories.invariants import INVARIANTS
from tests.histories.planted_faults import PLANTED_FAULTS, PlantedFault
from tests.histories.world import World, world
from tests.kit.server import until

FOUND_S = 180.0  # on a machine that is very slow
SOURCE = Path(__file__).parents[2] / "sso"


def find_planted_faults(group: str, folder: Path) -> dict[str, bool]:
    """Runs the program with the faults of a group. Returns whether the checker has found each of them in time."""
    faults = PLANTED_FAULTS[group]
    with world(folder / "nodes", program(faults, folder)) as running:
        searches = {fault.name: _Search(fault.invariant, running) for fault in faults}
        with acting(running):
            until(lambda: all(search.is_found for search in searches.values()), FOUND_S)
        return {name: search.is_found for name, search in searches.items()}


@dataclass
class _Search:
    invariant: str
    running: World
    _is_found: bool = False

    @property
    def is_found(self) -> bool:
        (invariant,) = (invariant for invariant in INVARIANTS if invariant.text == self.invariant)
        self._is_found = self._is_found or bool(invariant.check(self.running))
        return self._is_found


def program(faults: Sequence[PlantedFault], folder: Path) -> tuple[str, ...]:
    """Returns the command that runs a copy of the program with the faults."""
    folder.mkdir(exist_ok=True)
    copy = folder / "sso"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for module, text in edited_modules(faults).items():
        (copy / module).write_text(text)
    start = folder / "run.py"
    start.write_text("from sso.cli import main\n\nmain()\n")  # a program finds modules in its own folder first
    return (sys.executable, str(start))


def edited_modules(faults: Sequence[PlantedFault]) -> dict[str, str]:
    """Returns the source of the modules with the faults, by their paths."""
    texts: dict[str, str] = {}
    for fault in faults:
        for module, old, new in fault.edits:
            text = texts.get(module) or (SOURCE / module).read_text()
            assert text.count(old) == 1, f"{module} has changed: {old!r} occurs {text.count(old)} times"
            texts[module] = text.replace(old, new)
    return texts
