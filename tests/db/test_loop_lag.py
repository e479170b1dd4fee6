"""A process that is busy does not take the database for dead."""

import time

import pytest
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement

_SLEEP = Statement("SELECT 1 FROM pg_sleep(CAST(:seconds AS float))")


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sso.db.database.STATEMENT_S", 0.4)


async def test_a_statement_is_not_given_up_for_the_time_in_which_we_were_busy(database: Database) -> None:
    await database.ping()

    async def be_busy() -> None:
        for _ in range(20):
            await trio.lowlevel.checkpoint()
            time.sleep(0.1)  # noqa: ASYNC251 - that is the point

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_busy)
        assert await database.value(_SLEEP, seconds=0.1) == 1


async def test_a_statement_that_takes_too_long_is_given_up(database: Database) -> None:
    await database.ping()
    with pytest.raises(DatabaseError):
        await database.value(_SLEEP, seconds=3.0)
