from typing import Any

import pytest
import trio

from sso.db.batch.statement_batch import LONG_S, Batch
from sso.db.database import Database
from sso.db.errors import TransactionConflict, Unavailable
from sso.db.statement import Statement

DOUBLE = Statement(
    """SELECT item.n, item.value * 2 AS doubled, pg_sleep(0.005) FROM unnest(CAST(:values AS int[]))
    WITH ORDINALITY AS item (value, n) WHERE item.value >= 0"""
)
WAIT = Statement(
    """SELECT item.n, pg_sleep(item.value) FROM unnest(CAST(:values AS float[])) WITH ORDINALITY AS item (value, n)"""
)
CLAIM = Statement(
    """WITH item AS (
        SELECT DISTINCT ON (key) key, n FROM unnest(CAST(:keys AS bytea[])) WITH ORDINALITY AS item (key, n)
        ORDER BY key, n
    )
    UPDATE throttle t SET failures = 1 FROM item WHERE t.key = item.key AND t.failures = 0 RETURNING item.n"""
)


async def test_each_caller_gets_its_own_row_and_many_share_a_statement(database: Database) -> None:
    sizes: list[int] = []
    double = Batch(database, DOUBLE, observe=sizes.append)
    results: dict[int, int] = {}

    async def one(value: int) -> None:
        row = await double(value)
        assert row is not None
        results[value] = row["doubled"]

    async with trio.open_nursery() as nursery:
        for value in range(100):
            nursery.start_soon(one, value)
    assert results == {value: value * 2 for value in range(100)}
    assert sum(sizes) == 100
    assert len(sizes) < 10


async def test_no_row_is_none(database: Database) -> None:
    assert await Batch(database, DOUBLE)(-1) is None


async def test_of_two_items_with_one_key_exactly_one_wins(database: Database) -> None:
    await database.value(
        Statement(
            """INSERT INTO throttle (key, failures, since, blocked_until, expires)
            SELECT CAST('k' || k AS bytea), 0, now(), now(), now() FROM generate_series(1, 20) k"""
        )
    )
    claim = Batch(database, CLAIM)
    won: list[bytes] = []

    async def one(key: bytes) -> None:
        if await claim(key):
            won.append(key)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            for number in range(1, 21):
                nursery.start_soon(one, b"k%d" % number)
    assert sorted(won) == sorted(b"k%d" % number for number in range(1, 21))


async def test_one_bad_item_does_not_fail_the_others(database: Database) -> None:
    double = Batch(database, DOUBLE)
    good: list[int] = []

    async def one(value: object) -> None:
        if isinstance(value, int):
            row = await double(value)
            assert row is not None
            good.append(row["doubled"])
        else:
            with pytest.raises(Exception, match="int"):
                await double(value)

    async with trio.open_nursery() as nursery:
        for value in (1, 2, "three", 4, 5, 6):
            nursery.start_soon(one, value)
    assert sorted(good) == [2, 4, 8, 10, 12]


async def test_cancelled_callers_leave_the_others_alone(database: Database) -> None:
    double = Batch(database, DOUBLE)
    results: list[int] = []

    async def patient(value: int) -> None:
        row = await double(value)
        assert row is not None
        results.append(row["doubled"])

    async def impatient(value: int, after: float) -> None:
        with trio.move_on_after(after):
            await double(value)

    async with trio.open_nursery() as nursery:
        for value in range(60):
            nursery.start_soon(patient, value)
            nursery.start_soon(impatient, value, value * 0.001)
    assert sorted(results) == [value * 2 for value in range(60)]
    row = await double(21)
    assert row is not None
    assert row["doubled"] == 42


async def test_a_batch_that_waits_for_a_lock_holds_up_nobody_else(database: Database) -> None:
    sizes: list[int] = []
    wait = Batch(database, WAIT, observe=sizes.append)
    ended: list[float] = []

    async def one(seconds: float) -> None:
        await wait(seconds)
        ended.append(seconds)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, 1.0)
        await trio.sleep(0.01)
        nursery.start_soon(one, 0.0)  # in line behind it
        await trio.sleep(LONG_S + 0.1)
        nursery.start_soon(one, 0.001)
    assert sorted(ended[:2]) == [0.0, 0.001]
    assert ended[2] == 1.0
    assert sum(sizes) == 3
    assert wait._running == []


async def test_who_waits_behind_a_lock_goes_on_although_nobody_else_comes(database: Database) -> None:
    wait = Batch(database, WAIT)
    took: dict[str, float] = {}

    async def one(name: str, seconds: float) -> None:
        began = trio.current_time()
        await wait(seconds)
        took[name] = trio.current_time() - began

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, "stuck", 1.5)
        await trio.sleep(0.02)
        nursery.start_soon(one, "early", 0.0)  # before it is known that the first one is stuck
        await trio.sleep(2 * LONG_S)
        nursery.start_soon(one, "beside", 0.05)
        await trio.sleep(0.01)
        nursery.start_soon(one, "behind", 0.0)  # the batch before it is a short one
    assert max(took["early"], took["beside"], took["behind"]) < took["stuck"] / 2


async def test_who_was_taken_along_by_another_waits_for_that_batch(database: Database) -> None:
    sizes: list[int] = []
    wait = Batch(database, WAIT, observe=sizes.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, 5 * LONG_S)
        await trio.sleep(LONG_S / 2)
        nursery.start_soon(wait, 0.0)  # the first in line, and looks at the clock while the next one runs
        await trio.sleep(LONG_S * 0.7)
        nursery.start_soon(wait, 3 * LONG_S)
    assert sizes == [1, 2]
    assert wait._running == []


async def test_a_batch_that_collided_is_run_once_more(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    double, runs = Batch(database, DOUBLE), 0
    run_sql = database.run_sql

    async def collide(*arguments: Any) -> list[Any]:
        nonlocal runs
        runs += 1
        if runs % 2:
            raise TransactionConflict("DeadlockDetectedError")
        return await run_sql(*arguments)

    monkeypatch.setattr(database, "run_sql", collide)
    row = await double(21)
    assert row is not None
    assert row["doubled"] == 42
    assert runs == 2


async def test_while_one_batch_runs_all_others_wait_for_the_next(database: Database) -> None:
    sizes: list[int] = []
    wait = Batch(database, WAIT, observe=sizes.append)
    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(wait, 0.001)
    assert sizes == [1, 29]
    assert wait._running == []


async def test_everybody_is_told_when_the_database_is_gone() -> None:
    async with Database.open("postgresql://sso@127.0.0.1:1/none") as database:
        double = Batch(database, DOUBLE)
        told: list[int] = []

        async def one(value: int) -> None:
            with pytest.raises(Unavailable):
                await double(value)
            told.append(value)

        async with trio.open_nursery() as nursery:
            for value in range(20):
                nursery.start_soon(one, value)
        assert len(told) == 20
