"""Two batches run at a time, and do not wait for slow ones."""

from typing import cast

import pytest
import trio
import trio.testing

from sso.db.batch.scheduler import SLOW_S, BatchScheduler
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database

NUMBERS = BatchStatement("SELECT n FROM {items}", columns={"number": "int"})
SLEEP = BatchStatement("SELECT n, CAST(pg_sleep(seconds) AS text) FROM {items}", columns={"seconds": "float"})


class Recorder:
    """Runs named batches and records when each of them started."""

    def __init__(self) -> None:
        self.scheduler = BatchScheduler()
        self.started: list[tuple[str, float]] = []
        self._start = trio.current_time()

    async def run(self, name: str, seconds: float) -> None:
        started = await self.scheduler.enter()
        self.started.append((name, trio.current_time()))
        try:
            await trio.sleep(seconds)
        finally:
            self.scheduler.leave(started)

    @property
    def times(self) -> list[float]:
        """When the batches started, in units of SLOW_S."""
        return [(time - self._start) / SLOW_S for _, time in self.started]


async def test_lone_batch_starts_at_once(autojump_clock: trio.testing.MockClock) -> None:
    recorder = Recorder()
    for _ in range(3):
        await recorder.run("lone", SLOW_S / 4)
    assert recorder.times == pytest.approx([0, 0.25, 0.5])


async def test_two_quick_batches_run_at_a_time_in_order(autojump_clock: trio.testing.MockClock) -> None:
    recorder = Recorder()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder.run, "a", SLOW_S / 2)
        await trio.sleep(SLOW_S / 4)
        for name in "bcde":
            nursery.start_soon(recorder.run, name, SLOW_S / 2)
            await trio.testing.wait_all_tasks_blocked()
    assert [name for name, _ in recorder.started] == list("abcde")
    assert recorder.times == pytest.approx([0, 0.25, 0.5, 0.75, 1])


async def test_beside_slow_batches_more_and_more_start_together(autojump_clock: trio.testing.MockClock) -> None:
    recorder = Recorder()
    async with trio.open_nursery() as nursery:
        for name in "abcdefgh":
            nursery.start_soon(recorder.run, name, 1.0)
    assert recorder.times == pytest.approx([0, 0, 1, 1, 1, 2, 2, 2])


async def test_quick_batch_resets_how_many_start_together(autojump_clock: trio.testing.MockClock) -> None:
    recorder = Recorder()
    async with trio.open_nursery() as nursery:
        for name in "abcdefgh":
            nursery.start_soon(recorder.run, name, 1.0)
    await recorder.run("quick", SLOW_S / 2)
    start = trio.current_time()
    recorder.started = []
    async with trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(recorder.run, name, 1.0)
    assert [time - start for _, time in recorder.started] == pytest.approx([n * SLOW_S for n in (0, 0, 1, 1)])


async def test_batches_on_a_distant_database_wait_little(autojump_clock: trio.testing.MockClock) -> None:
    scheduler, waits = BatchScheduler(), []

    async def run_batches() -> None:
        for _ in range(50):
            asked = trio.current_time()
            started = await scheduler.enter()
            waits.append(started - asked)
            await trio.sleep(5 * SLOW_S)
            scheduler.leave(started)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(run_batches)
    assert sum(waits) / len(waits) <= 1.1 * SLOW_S


async def test_batch_waits_again_after_the_queue_was_empty(autojump_clock: trio.testing.MockClock) -> None:
    recorder = Recorder()
    async with trio.open_nursery() as nursery:
        for name in ("slow", "slow too", "a"):
            nursery.start_soon(recorder.run, name, 1.0)
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(1.5 * SLOW_S)
        for name in "bc":
            nursery.start_soon(recorder.run, name, 1.0)
            await trio.testing.wait_all_tasks_blocked()
    assert recorder.times == pytest.approx([0, 0, 1, 1.5, 2])


async def test_end_of_a_slow_batch_does_not_start_the_next_beside_two_quick_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    recorder = Recorder()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder.run, "slow", 1.5 * SLOW_S)
        await trio.sleep(1.1 * SLOW_S)
        for name in ("a", "b"):
            nursery.start_soon(recorder.run, name, 0.9 * SLOW_S)  # from 1.1 * SLOW_S to 2 * SLOW_S
        await trio.sleep(0.1 * SLOW_S)
        nursery.start_soon(recorder.run, "c", SLOW_S)  # "slow" ends at 1.5 * SLOW_S, while "a" and "b" are running
    assert recorder.times == pytest.approx([0, 1.1, 1.1, 2])


class QuickDatabase:
    """Each statement takes a third of SLOW_S, independent of its number of items."""

    def __init__(self, scheduler: BatchScheduler) -> None:
        self.scheduler = scheduler
        self.telemetry = None

    async def run_sql(self, sql: str, columns: list[list[int]], *_: object) -> list[dict[str, int]]:
        await trio.sleep(SLOW_S / 3)
        return [{"n": number} for number, _ in enumerate(columns[0], 1)]


class NoScheduler(BatchScheduler):
    async def enter(self, *, has_waited: bool = False) -> float:
        return 0.0

    def leave(self, started: float, items: int = 1) -> None: ...


async def mean_batch_size(scheduler: BatchScheduler) -> float:
    database = cast(Database, QuickDatabase(scheduler))
    sizes: list[int] = []

    async def call(batch: Batch) -> None:
        for number in range(20):
            assert await batch(number=number) is not None

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            batch = Batch(database, NUMBERS, observe=sizes.append)
            for _ in range(4):
                nursery.start_soon(call, batch)
    assert sum(sizes) == 6 * 4 * 20
    return sum(sizes) / len(sizes)


async def test_scheduler_makes_batches_of_several_operations_larger(autojump_clock: trio.testing.MockClock) -> None:
    assert await mean_batch_size(BatchScheduler()) > 1.2 * await mean_batch_size(NoScheduler())


async def test_callers_of_the_last_batch_join_the_next_one(autojump_clock: trio.testing.MockClock) -> None:
    sizes: list[int] = []
    batch = Batch(cast(Database, QuickDatabase(BatchScheduler())), NUMBERS, observe=sizes.append)

    async def call_again(turns: int) -> None:
        for number in range(10):
            await batch(number=number)
            for _ in range(turns):  # what a caller does before its next call
                await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for turns in (0, 1, 2, 3):
            nursery.start_soon(call_again, turns)
    assert max(sizes) == 4
    assert len(sizes) <= 14  # half of the calls would share a batch with no other if it started at once


async def test_statement_that_waits_does_not_delay_other_operations(database: Database) -> None:
    sleep, quick = Batch(database, SLEEP), Batch(database, NUMBERS)
    await quick(number=0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: sleep(seconds=1.7))  # about as long as a statement may take
        while not sleep._running:
            await trio.lowlevel.checkpoint()
        for number in range(20):
            await quick(number=number)
        assert sleep._running
        nursery.cancel_scope.cancel()
