"""Compares the CPU time of a dozen calls with stored figures, to notice a change that makes the service slower.

A figure is the CPU time of a worker for one call, without signatures and password hashes, divided by that of a fixed
piece of work in the same run, so that it depends little on the speed of the machine. The least of several rounds
counts: other programs can only add to it. What all calls have in common (up to 25 %) is shown by itself. Changes above
10 % are reported. The program fails if a call takes 60 % more than its stored figure in three measurements in a row:
on a machine that is shared with others, the same code took up to 44 % more from one run to the next.
While other programs use the processors, all calls take longer, so then it fails only if one takes twice as much as the
others would let expect. Figures are stored by kind of processor; on another kind there is nothing to compare with, and
nothing fails. ``--store`` replaces the figures of this kind.
"""

import http.client
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from scripts.benchmarks.guard_calls import Call, call_us, calls
from scripts.benchmarks.guard_units import BUSY, NativeWork, Unit, measure_native_work, measure_unit
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.report import Steps, arguments, show
from sso.log import configure_logging
from tests.kit import postgres
from tests.kit.server import Server

FIGURES = Path(__file__).with_name("guard.json")
REPORTED, FAILING, FAILING_WHEN_BUSY = 0.10, 0.60, 1.0
ATTEMPTS, ROUNDS = 3, 4
MAX_SECONDS = 40.0  # then no further measurement starts
MAX_FACTOR, MAX_FACTOR_WHEN_BUSY = 1.25, 5.0
LEAST_OWN_SHARE = 1 / 3  # of the time of a call

Ratios = dict[str, float]


class Measurement(NamedTuple):
    ratios: Ratios
    is_busy: bool  # other programs used the processors


class Verdict(NamedTuple):
    ratios: Ratios
    factor: float  # by which all calls differ from the stored figures
    slower: list[str]  # the calls that were too slow in every measurement
    is_busy: bool = False


# Measures the calls with these names, or all; returns None if there is no time left.
Measure = Callable[[list[str] | None], Measurement | None]


class GuardRun:
    """Measures calls of a running service by turns, until the time is over."""

    def __init__(self, server: Server, wanted: Mapping[str, Call], steps: Steps) -> None:
        self._server = server
        self._wanted = wanted
        self._steps = steps
        self._native = measure_native_work()
        self._until = time.monotonic() + MAX_SECONDS

    def measure(self, names: list[str] | None = None) -> Measurement | None:
        chosen = {name: call for name, call in self._wanted.items() if names is None or name in names}
        units: list[Unit] = []
        found: dict[str, list[float]] = {name: [] for name in chosen}
        for number, name in product(range(ROUNDS), chosen):
            if time.monotonic() > self._until:
                break
            self._steps.detail(f"round {number + 1} of {ROUNDS}: {name}")
            units.append(measure_unit())
            found[name].append(call_us(self._server, chosen[name]))
        return summary(found, units, self._native) if all(found.values()) else None


def summary(found: Mapping[str, list[float]], units: list[Unit], native: NativeWork) -> Measurement:
    """Leaves out calls that are mostly native work, as on processors with slow signatures: noise would decide."""
    least = min(unit.us for unit in units)
    own = {name: min(took) - native.of_call(name) for name, took in found.items()}
    ratios = {name: us / least for name, us in own.items() if us > min(found[name]) * LEAST_OWN_SHARE}
    return Measurement(ratios, statistics.median(unit.contention for unit in units) > BUSY)


def machine_factor(measured: Measurement, stored: Ratios) -> float:
    """Returns by how much all calls differ: processors of a kind are not equal. A large difference is not ignored."""
    factors = [value / stored[name] for name, value in measured.ratios.items() if name in stored]
    limit = MAX_FACTOR_WHEN_BUSY if measured.is_busy else MAX_FACTOR
    return min(max(statistics.median(factors), 1 / MAX_FACTOR), limit) if factors else 1.0


def changes(measured: Ratios, stored: Ratios, factor: float) -> Ratios:
    return {name: value / stored[name] / factor - 1 for name, value in measured.items() if name in stored}


def judge(measure: Measure, stored: Ratios) -> Verdict:
    """Measures all calls, and those that are too slow again, up to three times in all."""
    first = measure(None)
    if first is None:
        return Verdict({}, 1.0, [])
    factor = machine_factor(first, stored)
    ratios, slower, is_busy = dict(first.ratios), _too_slow(first, stored, factor), first.is_busy
    for _ in range(ATTEMPTS - 1):
        again = measure(slower) if slower else None
        if again is None:
            return Verdict(ratios, factor, [], is_busy)  # nothing is too slow, or there was no time to be sure
        ratios |= {name: min(value, ratios[name]) for name, value in again.ratios.items()}
        is_busy = is_busy or again.is_busy
        slower = _too_slow(again, stored, factor)
    return Verdict(ratios, factor, slower, is_busy)


def _too_slow(measurement: Measurement, stored: Ratios, factor: float) -> list[str]:
    limit = FAILING_WHEN_BUSY if measurement.is_busy else FAILING
    return [name for name, change in changes(measurement.ratios, stored, factor).items() if change > limit]


def rows(verdict: Verdict, stored: Ratios) -> list[dict[str, Any]]:
    table = []
    changed = changes(verdict.ratios, stored, verdict.factor)
    for name, value in verdict.ratios.items():
        change = changed.get(name, 0.0)
        mark = ("slower" if change > 0 else "faster") if abs(change) > REPORTED else ""
        text = f"{change:+.0%}" if name in changed else "new"
        table.append({"call": name, "stored": stored.get(name, 0.0), "now": value, "change": text, "": mark})
    return table


def run(stored: Ratios) -> Verdict:
    limits = {"SSO_RATE_GETGSID": "0", "SSO_WORKERS": "1"}
    steps = Steps(1)
    with postgres.running() as database, running_service(database.fresh(), **limits) as (server, target):
        steps.next("CPU time of calls")
        return judge(GuardRun(server, calls(server, target), steps).measure, stored)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--store", action="store_true", help="store the figures instead of comparing them")
    options = parser.parse_args()
    configure_logging("auto", "error")
    all_figures: dict[str, Ratios] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    stored = {} if options.store else all_figures.get(platform.machine(), {})
    try:
        verdict = run(stored)
    except (OSError, http.client.HTTPException) as error:
        print(f"Nothing was measured: a request failed ({error!r}).")
        return
    if not verdict.ratios:
        print("Nothing was measured: the machine is too slow.")
        return
    show(rows(verdict, stored), options.out)
    if stored:
        print(f"All calls together: {verdict.factor - 1:+.0%}, which the changes above do not include.")
    elif not options.store:
        print(f"There are no figures of {platform.machine()} to compare with; --store stores these.")
    if verdict.is_busy:
        print("Other programs used the processors meanwhile, so the figures are too high.")
    if options.store:
        figures = all_figures | {platform.machine(): {name: round(value, 3) for name, value in verdict.ratios.items()}}
        FIGURES.write_text(json.dumps(figures, indent=4, sort_keys=True) + "\n")
    if verdict.slower:
        sys.exit(f"slower by more than {FAILING:.0%}, {ATTEMPTS} times in a row: {', '.join(verdict.slower)}")


if __name__ == "__main__":
    main()
