"""Deadlines of database calls are extended by the time in which the process itself was busy, and end with it."""

import time
from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from sso.db.call_deadlines import ROUND_S, CallDeadlines
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.time_limits import TimeLimits

SLEEP = Statement("SELECT 1 FROM pg_sleep(CAST(:seconds AS float))")


@pytest.fixture
async def deadlines(mock_clock: trio.testing.MockClock) -> AsyncIterator[CallDeadlines]:
    deadlines = CallDeadlines()
    trio.lowlevel.add_instrument(deadlines)
    yield deadlines
    trio.lowlevel.remove_instrument(deadlines)


@pytest.mark.parametrize(("round_s", "extended_by"), [(ROUND_S / 2, 0), (1.0, 1.0)])
async def test_long_round_extends_deadlines_by_its_duration(
    deadlines: CallDeadlines, mock_clock: trio.testing.MockClock, round_s: float, extended_by: float
) -> None:
    scope, unrelated = trio.CancelScope(deadline=10), trio.CancelScope(deadline=10)
    deadlines.scopes.add(scope)
    await trio.lowlevel.checkpoint()
    mock_clock.jump(round_s)  # as if this task had computed for so long
    await trio.lowlevel.checkpoint()
    await trio.lowlevel.checkpoint()
    assert scope.deadline == pytest.approx(10 + extended_by)
    assert unrelated.deadline == 10


async def test_long_round_extends_no_deadline_beyond_the_end_of_all_calls(
    deadlines: CallDeadlines, mock_clock: trio.testing.MockClock
) -> None:
    running = deadlines.open_scope(9)
    deadlines.end_calls_by(10)
    later = deadlines.open_scope(20)
    await trio.lowlevel.checkpoint()
    mock_clock.jump(2.0)  # as if this task had computed for so long
    await trio.lowlevel.checkpoint()
    await trio.lowlevel.checkpoint()
    assert running.deadline == later.deadline == 10


async def test_statement_is_not_cancelled_while_the_process_is_busy(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "limits", TimeLimits.scaled(3.0))
    await database.ping()

    async def compute() -> None:
        for _ in range(32):
            await trio.lowlevel.checkpoint()
            time.sleep(0.1)  # noqa: ASYNC251 - blocks the event loop

    async with trio.open_nursery() as nursery:
        nursery.start_soon(compute)
        assert await database.value(SLEEP, seconds=0.1) == 1


async def test_statement_that_takes_too_long_is_cancelled(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await database.ping()
    monkeypatch.setattr(database, "limits", TimeLimits.scaled(0.2))
    with pytest.raises(DatabaseError):
        await database.value(SLEEP, seconds=3.0)
