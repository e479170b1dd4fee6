"""The verdict of ``scripts/bench guard``: a slower call is noticed, noise is not."""

from collections.abc import Iterable, Iterator

import pytest

from scripts.benchmarks.guard import Measurement, Ratios, Verdict, judge, summary
from scripts.benchmarks.guard_units import NativeWork, Unit

STORED = {"health": 10.0, "userinfo": 40.0, "permissions": 50.0, "refresh": 100.0}


class Measurements:
    """Returns prepared measurements, of the wanted calls only."""

    def __init__(self, prepared: Iterable[Measurement]) -> None:
        self._prepared: Iterator[Measurement] = iter(prepared)
        self.wanted: list[list[str] | None] = []

    def __call__(self, names: list[str] | None) -> Measurement | None:
        self.wanted.append(names)
        measured = next(self._prepared, None)
        if measured is None or names is None:
            return measured
        return measured._replace(ratios={name: measured.ratios[name] for name in names})


def quiet(factor: float = 1.0, **slower: float) -> Measurement:
    return Measurement({name: value * factor * slower.get(name, 1.0) for name, value in STORED.items()}, is_busy=False)


def busy(factor: float = 1.0, **slower: float) -> Measurement:
    return quiet(factor, **slower)._replace(is_busy=True)


def verdict(*prepared: Measurement, stored: Ratios = STORED) -> Verdict:
    return judge(Measurements(prepared), stored)


def test_call_that_is_slower_three_times_in_a_row_fails() -> None:
    slow = quiet(userinfo=1.7)
    measurements = Measurements([slow, slow, slow])
    assert judge(measurements, STORED).slower == ["userinfo"]
    assert measurements.wanted == [None, ["userinfo"], ["userinfo"]]


@pytest.mark.parametrize(
    "prepared",
    [
        [quiet()],
        [quiet(userinfo=1.59)],
        [quiet(userinfo=1.7), quiet()],
        [quiet(userinfo=1.7), quiet(userinfo=1.7), quiet()],
        [quiet(userinfo=2.0), quiet(userinfo=2.0)],  # no time for the third
        [quiet(1.25)],  # another processor
        [quiet(0.5)],
        [busy(3.0)],
        [busy(2.5, userinfo=1.8)],
        [busy(2.5, userinfo=2.5), quiet()],
        [],  # no time at all
    ],
)
def test_noise_and_other_machines_do_not_fail(prepared: list[Measurement]) -> None:
    assert verdict(*prepared).slower == []


def test_all_calls_together_fail_on_a_quiet_machine() -> None:
    assert verdict(*[quiet(2.1)] * 3).slower == list(STORED)


def test_much_slower_call_fails_on_a_busy_machine() -> None:
    assert verdict(*[busy(2.5, refresh=2.5)] * 3).slower == ["refresh"]


def test_without_stored_figures_nothing_fails() -> None:
    assert verdict(quiet(3.0, userinfo=9.0), stored={}).slower == []


def test_figure_is_the_least_time_without_signatures_and_hashes() -> None:
    units = [Unit(20.0, 1.0), Unit(10.0, 1.1), Unit(15.0, 3.0)]
    found = {"health": [120.0, 100.0], "refresh": [900.0, 800.0], "login by API": [1300.0]}
    measured = summary(found, units, NativeWork(signature_us=500.0, hash_us=300.0))
    assert measured == Measurement({"health": 10.0, "refresh": 30.0, "login by API": 50.0}, is_busy=False)
    assert summary(found, [Unit(10.0, 2.0)], NativeWork(0.0, 0.0)).is_busy
    slow_signatures = summary(found, units, NativeWork(signature_us=700.0, hash_us=0.0))
    assert slow_signatures.ratios.keys() == {"health", "login by API"}
