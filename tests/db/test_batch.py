import pytest
import trio

from sso.db.batch import TURNS, Batch
from sso.db.bridge import Database
from sso.db.errors import Unavailable
from sso.db.statement import Statement

DOUBLE = Statement(
    """SELECT item.n, item.value * 2 AS doubled, pg_sleep(0.005) FROM unnest(CAST(:values AS int[]))
    WITH ORDINALITY AS item (value, n) WHERE item.value >= 0"""
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


async def test_two_turns_that_end_in_the_same_instant_go_on_as_two(database: Database) -> None:
    """Each is handed to somebody of its own: else there would be one less from then on."""
    double = Batch(database, DOUBLE)
    started = 0

    async def at_once(sql: str, arguments: list[list[int]]) -> list[dict[str, int]]:
        nonlocal started
        started += 1
        await trio.sleep(0.01 if started <= 2 else 0)  # the first two end together
        return [{"n": n, "doubled": value * 2} for n, value in enumerate(arguments[0], 1)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "run_sql", at_once)
        for _ in range(20):
            started = 0
            async with trio.open_nursery() as nursery:
                for value in range(6):
                    nursery.start_soon(double, value)
    assert double._turns == TURNS


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
