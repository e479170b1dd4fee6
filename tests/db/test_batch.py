"""Concurrent calls share a statement. Each gets its own row; slow, failing or cancelled calls do not harm others."""

from typing import Any, cast

import pytest
import trio
import trio.testing

from sso.db.batch.scheduler import BatchScheduler
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import SLOW_BATCH_S, Batch
from sso.db.database import Database
from sso.db.errors import DeadlineExceeded, TransactionConflict, Unavailable
from sso.db.statement import Statement

DOUBLE = BatchStatement(
    "SELECT item.n, item.value * 2 AS doubled FROM {items} WHERE item.value >= 0", columns={"value": "int"}
)
CLAIM = BatchStatement(
    """WITH item AS (SELECT DISTINCT ON (key) key, n FROM {items} ORDER BY key, n)
    UPDATE throttle t SET failures = 1 FROM item WHERE t.key = item.key AND t.failures = 0 RETURNING item.n""",
    columns={"key": "bytea"},
)
ADD_STREAM = BatchStatement(
    """WITH item AS (SELECT * FROM {items}), added AS (
        INSERT INTO signal_streams (stream_id, client_id, method)
        SELECT stream_id, client_id, 'poll' FROM item RETURNING stream_id
    )
    SELECT item.n FROM item JOIN added USING (stream_id)""",
    columns={"stream_id": "text", "client_id": "text"},
)
WAIT = BatchStatement("SELECT n FROM {items}", columns={"seconds": "float"})


class SleepingDatabase:
    """Runs the statement WAIT: a batch takes as many seconds as its longest item asks for."""

    def __init__(self) -> None:
        self.scheduler = BatchScheduler()
        self.telemetry = None
        self.batches: list[list[float]] = []

    async def run_sql(self, sql: str, columns: list[list[float]], *_: object) -> list[dict[str, int]]:
        [seconds] = columns
        self.batches.append(seconds)
        with trio.CancelScope(shield=True):  # as the database does for a batch
            await trio.sleep(max(seconds))
        return [{"n": number} for number, _ in enumerate(seconds, 1)]


class Callers:
    """Calls of one batch on a SleepingDatabase, and when each of them was done."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.database = SleepingDatabase()
        self.batch = Batch(cast(Database, self.database), WAIT)
        self.done_at: dict[str, float] = {}
        self._nursery = nursery
        self._start = trio.current_time()

    async def start(self, name: str, seconds: float) -> None:
        async def call() -> None:
            assert await self.batch(seconds=seconds) is not None
            self.done_at[name] = trio.current_time() - self._start

        self._nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()


async def test_each_caller_gets_its_own_row_and_many_share_a_statement(database: Database) -> None:
    sizes: list[int] = []
    double = Batch(database, DOUBLE, observe=sizes.append)
    results: dict[int, int] = {}

    async def call(value: int) -> None:
        row = await double(value=value)
        assert row is not None
        results[value] = row["doubled"]

    async with trio.open_nursery() as nursery:
        for value in range(100):
            nursery.start_soon(call, value)
    assert results == {value: value * 2 for value in range(100)}
    assert (sizes[0], sum(sizes)) == (1, 100)
    assert len(sizes) < 10  # one more for each time that the machine stalls while the calls begin


async def test_item_without_a_row_gets_none(database: Database) -> None:
    assert await Batch(database, DOUBLE)(value=-1) is None


async def test_of_items_with_one_key_exactly_one_gets_a_row(database: Database) -> None:
    await database.value(
        Statement(
            """INSERT INTO throttle (key, failures, since, blocked_until, expires)
            SELECT CAST('k' || k AS bytea), 0, now(), now(), now() FROM generate_series(1, 20) k"""
        )
    )
    claim = Batch(database, CLAIM)
    claimed: list[bytes] = []

    async def call(key: bytes) -> None:
        if await claim(key=key):
            claimed.append(key)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            for number in range(1, 21):
                nursery.start_soon(call, b"k%d" % number)
    assert sorted(claimed) == sorted(b"k%d" % number for number in range(1, 21))


async def test_bad_item_does_not_fail_the_others(database: Database) -> None:
    double = Batch(database, DOUBLE)
    results: list[int] = []

    async def call(value: object) -> None:
        if isinstance(value, int):
            row = await double(value=value)
            assert row is not None
            results.append(row["doubled"])
        else:
            with pytest.raises(Exception, match="int"):
                await double(value=value)

    async with trio.open_nursery() as nursery:
        for value in (1, 2, "three", 4, 5, 6):
            nursery.start_soon(call, value)
    assert sorted(results) == [2, 4, 8, 10, 12]


async def test_cancelled_callers_do_not_harm_the_others(autojump_clock: trio.testing.MockClock) -> None:
    """Callers are cancelled while they wait, at the moment when they become leader, and while they lead."""
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)

        async def call_for(seconds: float) -> None:
            with trio.move_on_after(seconds):
                await callers.batch(seconds=0.005)

        for number in range(60):
            nursery.start_soon(callers.start, f"caller {number}", 0.005)
            nursery.start_soon(call_for, number * 0.001)
    assert len(callers.done_at) == 60
    assert callers.batch._running == []
    assert not callers.batch._waiting


async def test_while_a_batch_runs_all_callers_wait_for_the_next_one(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        for number in range(30):
            await callers.start(f"caller {number}", SLOW_BATCH_S / 2)
    assert [len(batch) for batch in callers.database.batches] == [1, 29]
    assert callers.batch._running == []


async def test_next_batch_runs_beside_a_slow_one(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        await callers.start("slow", 10.0)
        await trio.sleep(SLOW_BATCH_S / 4)
        await callers.start("waiting", 0.0)
        await trio.sleep(2 * SLOW_BATCH_S)
        await callers.start("later", SLOW_BATCH_S / 2)
        await callers.start("last", 0.0)  # waits for a batch that is not slow
    assert callers.done_at == pytest.approx(
        {"slow": 10.0, "waiting": 1.25 * SLOW_BATCH_S, "later": 2.75 * SLOW_BATCH_S, "last": 2.75 * SLOW_BATCH_S}
    )
    assert callers.database.batches == [[10.0], [0.0], [SLOW_BATCH_S / 2], [0.0]]
    assert callers.batch._running == []


async def test_first_waiting_caller_is_taken_into_the_batch_of_a_later_leader(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It watches for a slow batch every SLOW_BATCH_S; a caller that comes in between leads, and takes it along."""
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        await callers.start("slow", 5 * SLOW_BATCH_S)
        await trio.sleep(SLOW_BATCH_S / 2)
        await callers.start("first", 0.0)
        await trio.sleep(SLOW_BATCH_S * 0.7)
        await callers.start("leader", 3 * SLOW_BATCH_S)
    assert callers.database.batches == [[5 * SLOW_BATCH_S], [3 * SLOW_BATCH_S, 0.0]]
    assert callers.done_at["first"] == callers.done_at["leader"] == pytest.approx(4.2 * SLOW_BATCH_S)
    assert callers.batch._running == []


async def test_next_caller_watches_for_a_slow_batch_if_the_first_one_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        await callers.start("slow", 10.0)
        with trio.move_on_after(SLOW_BATCH_S / 2):
            nursery.start_soon(callers.start, "next", 0.0)
            await callers.batch(seconds=0.0)
    assert callers.done_at == pytest.approx({"next": 1.5 * SLOW_BATCH_S, "slow": 10.0})


async def test_callers_that_a_full_batch_leaves_behind_watch_for_a_slow_one(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.db.batch.statement_batch.MAX_BATCH_ITEMS", 2)
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        for name, seconds in (("slow", 10.0), ("also slow", 10.0), ("with it", 0.0), ("left", 0.0), ("last", 0.0)):
            await callers.start(name, seconds)
    assert callers.database.batches == [[10.0], [10.0, 0.0], [0.0, 0.0]]
    assert callers.done_at["left"] == callers.done_at["last"] < 4 * SLOW_BATCH_S
    assert callers.batch._running == []


async def test_batch_that_conflicts_with_a_transaction_runs_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    double, runs = Batch(database, DOUBLE), 0
    run_sql = database.run_sql

    async def conflict(*arguments: Any) -> list[Any]:
        nonlocal runs
        runs += 1
        if runs % 2:
            raise TransactionConflict("DeadlockDetectedError")
        return await run_sql(*arguments)

    monkeypatch.setattr(database, "run_sql", conflict)
    row = await double(value=21)
    assert row is not None
    assert row["doubled"] == 42
    assert runs == 2


async def test_item_without_a_parent_does_not_fail_the_others(database: Database) -> None:
    """It looks like a conflict with the deletion of the parent."""
    await database.value(Statement("INSERT INTO oauth_clients (client_id) VALUES ('shop')"))
    add = Batch(database, ADD_STREAM)
    outcomes: dict[str, bool] = {}

    async def call(stream_id: str, client_id: str) -> None:
        try:
            outcomes[stream_id] = await add(stream_id=stream_id, client_id=client_id) is not None
        except TransactionConflict:
            outcomes[stream_id] = False

    async with trio.open_nursery() as nursery:
        for number, client_id in enumerate(("shop", "shop", "nobody", "shop")):
            nursery.start_soon(call, f"s{number}", client_id)
    assert outcomes == {"s0": True, "s1": True, "s2": False, "s3": True}


async def test_all_waiting_callers_fail_when_a_batch_times_out(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def time_out(*_: Any) -> list[Any]:
        await trio.sleep(SLOW_BATCH_S / 2)
        raise DeadlineExceeded("the database did not answer in time")

    database, failed = SleepingDatabase(), 0
    monkeypatch.setattr(database, "run_sql", time_out)
    batch = Batch(cast(Database, database), WAIT)

    async def call() -> None:
        nonlocal failed
        with pytest.raises(DeadlineExceeded):
            await batch(seconds=0.0)
        failed += 1

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(call)
    assert failed == 20
    assert trio.current_time() - began == pytest.approx(SLOW_BATCH_S / 2)


async def test_all_callers_fail_while_the_database_is_unreachable() -> None:
    async with Database.open("postgresql://sso@127.0.0.1:1/none") as database:
        double, failed = Batch(database, DOUBLE), 0

        async def call(value: int) -> None:
            nonlocal failed
            with pytest.raises(Unavailable):
                await double(value=value)
            failed += 1

        async with trio.open_nursery() as nursery:
            for value in range(20):
                nursery.start_soon(call, value)
        assert failed == 20
