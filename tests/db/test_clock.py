"""The clock of the database: measured, smoothed by the round trip, and independent of the host's clock."""

import time

import pytest

from sso.db.clock import MAX_DRIFT, DatabaseClock
from sso.db.clock_sync import measure_clock
from sso.db.database import Database
from sso.db.statement import Statement

NOW = Statement("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float)")


class Steady:
    """A steady clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def steady() -> Steady:
    return Steady()


def test_clock_follows_the_host_until_it_is_measured() -> None:
    assert abs(DatabaseClock().now() - time.time()) < 60


async def test_measured_clock_agrees_with_the_database(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 500)  # the clock of this host is wrong
    clock = database.clock = DatabaseClock()
    assert clock.now() - real() > 400
    await measure_clock(database)
    before = await database.value(NOW)
    measured = clock.now()
    after = await database.value(NOW)
    assert before - 0.5 < measured < after + 0.5
    assert 495 < clock.host_offset() < 505
    assert clock.utc().timestamp() == pytest.approx(measured, abs=5)


def test_offset_is_taken_at_the_middle_of_the_round_trip(steady: Steady) -> None:
    clock = DatabaseClock(steady)
    clock.record(1000.0, 5000.0, 1000.2)
    assert clock.now() == pytest.approx(4999.9)
    steady.seconds += 60
    assert clock.now() == pytest.approx(5059.9)


def test_slower_sample_within_its_uncertainty_is_ignored(steady: Steady) -> None:
    clock = DatabaseClock(steady)
    clock.record(1000.0, 5000.0, 1000.002)
    exact = clock.now()
    clock.record(1000.0, 5000.4, 1001.0)
    assert clock.now() == exact


def test_faster_sample_replaces_a_slower_one(steady: Steady) -> None:
    clock = DatabaseClock(steady)
    clock.record(1000.0, 5000.4, 1001.0)
    clock.record(1000.0, 5000.0, 1000.002)
    assert clock.now() == pytest.approx(4999.999)


def test_change_of_the_database_clock_is_followed_whatever_the_round_trip(steady: Steady) -> None:
    """After a failover, another machine is the database."""
    clock = DatabaseClock(steady)
    clock.record(1000.0, 5000.0, 1000.002)
    clock.record(1000.0, 5090.5, 1001.0)
    assert clock.now() == pytest.approx(5090.0)


def test_old_sample_loses_exactness(steady: Steady) -> None:
    clock = DatabaseClock(steady)
    clock.record(1000.0, 5000.0, 1000.002)
    later = 1000.0 + 0.1 / MAX_DRIFT
    clock.record(later, 5000.0 + later - 1000 + 0.03, later + 0.1)
    steady.seconds = later
    assert clock.now() == pytest.approx(5000.0 + later - 1000 - 0.02)
