"""Changes of one place in the modules that decide: their tests must notice at least nine of ten."""

from math import comb

from scripts.proofs.part import Deadline, PartResult, Progress
from tests.mutants.__main__ import LEAST_SHARE
from tests.mutants.runner import Score, score, shared_postgres, warm_up
from tests.mutants.survivors import equivalent_mutants
from tests.mutants.table import MODULES

MIN_CHANCE = 0.01  # of a sample: with a smaller one, the share of the module is taken to be too low


def run(minutes: float, progress: Progress) -> PartResult:
    """Tries each mutant if there is time; otherwise each module gets its share of the time."""
    deadline = Deadline(minutes)
    result = PartResult(invariants=[f"At least {LEAST_SHARE:.0%} of the mutants of each module are noticed."])
    warm_up(sorted({test for tests in MODULES.values() for test in tests}))
    with shared_postgres():
        for number, (module, tests) in enumerate(MODULES.items()):
            if deadline.is_over:
                result.not_run[module] = "there was no time left"
                continue
            progress(f"{number} of {len(MODULES)}: {module}, {result.rounds} mutants …")
            seconds = max(1.0, deadline.seconds_left / (len(MODULES) - number))
            found = score(module, tests, equivalent_mutants(module), seconds=seconds, shuffled=True)
            result.rounds += found.total
            result.figures.append(
                {"Module": module, "Tried": found.total, "Of": found.known, "Noticed": f"{found.share:.0%}"}
            )
            if found.share < LEAST_SHARE and (found.total == found.known or _is_unlikely(found)):
                result.violations.append(f"{module}: {found.share:.0%} noticed; not {'; '.join(found.survivors)}")
    return result


def _is_unlikely(found: Score) -> bool:
    """Returns whether chance alone would hardly give so many survivors, if just enough mutants were noticed."""
    survivors, missed = range(len(found.survivors), found.total + 1), 1 - LEAST_SHARE
    chance = sum(comb(found.total, n) * missed**n * LEAST_SHARE ** (found.total - n) for n in survivors)
    return chance < MIN_CHANCE
