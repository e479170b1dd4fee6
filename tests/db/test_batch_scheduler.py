"""Batches begin one after the other, but none waits for one that takes long."""

import time

import pytest
import trio
import trio.testing

from sso.db.batch.scheduler import SLOW_S, BatchScheduler
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement

KINDS = 6
EACH = 20


class Road:
    """Who is let in, and when."""

    def __init__(self) -> None:
        self.scheduler = BatchScheduler()
        self.begun: list[tuple[str, float]] = []

    async def go(self, name: str, seconds: float) -> None:
        began = await self.scheduler.enter()
        self.begun.append((name, trio.current_time()))
        try:
            await trio.sleep(seconds)
        finally:
            self.scheduler.leave(began)


async def test_a_lone_one_begins_at_once(autojump_clock: trio.testing.MockClock) -> None:
    road, start = Road(), trio.current_time()
    for _ in range(3):
        await road.go("lone", SLOW_S / 4)
    assert [at - start for _, at in road.begun] == pytest.approx([0, SLOW_S / 4, SLOW_S / 2])


async def test_one_after_the_other_in_the_order_in_which_they_came(autojump_clock: trio.testing.MockClock) -> None:
    road, start = Road(), trio.current_time()
    async with trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(road.go, name, SLOW_S / 2)
            await trio.testing.wait_all_tasks_blocked()
    assert [name for name, _ in road.begun] == list("abcd")
    assert [at - start for _, at in road.begun] == pytest.approx([n * SLOW_S / 2 for n in range(4)])


async def test_while_all_take_long_one_goes_on_then_two_then_four(autojump_clock: trio.testing.MockClock) -> None:
    road, start = Road(), trio.current_time()
    async with trio.open_nursery() as nursery:
        for name in "abcdefgh":
            nursery.start_soon(road.go, name, 1.0)
    moments = [0, 1, 2, 2, 3, 3, 3, 3]
    assert [at - start for _, at in road.begun] == pytest.approx([n * SLOW_S for n in moments])


async def test_a_quick_one_ends_the_hurry(autojump_clock: trio.testing.MockClock) -> None:
    road = Road()
    async with trio.open_nursery() as nursery:
        for name in "abcdefgh":
            nursery.start_soon(road.go, name, 1.0)
    await road.go("quick", SLOW_S / 2)
    start, road.begun = trio.current_time(), []
    async with trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(road.go, name, 1.0)
    assert [at - start for _, at in road.begun] == pytest.approx([n * SLOW_S for n in (0, 1, 2, 2)])


async def test_with_a_far_database_there_is_hardly_any_waiting(autojump_clock: trio.testing.MockClock) -> None:
    traffic, waited = BatchScheduler(), []

    async def kind() -> None:
        for _ in range(50):
            asked = trio.current_time()
            began = await traffic.enter()
            waited.append(began - asked)
            await trio.sleep(5 * SLOW_S)
            traffic.leave(began)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(kind)
    assert sum(waited) / len(waited) <= 1.1 * SLOW_S


async def test_who_comes_after_them_waits_again(autojump_clock: trio.testing.MockClock) -> None:
    road, start = Road(), trio.current_time()
    async with trio.open_nursery() as nursery:
        for name in ("slow", "a"):
            nursery.start_soon(road.go, name, 1.0)
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(1.5 * SLOW_S)
        nursery.start_soon(road.go, "b", 1.0)
    assert [at - start for _, at in road.begun] == pytest.approx([0, SLOW_S, 2 * SLOW_S])


async def test_a_slow_one_that_leaves_changes_nothing_for_the_others(autojump_clock: trio.testing.MockClock) -> None:
    road, start = Road(), trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(road.go, "slow", 1.5 * SLOW_S)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(road.go, "a", SLOW_S)  # from SLOW_S to 2 * SLOW_S
        await trio.sleep(1.2 * SLOW_S)
        nursery.start_soon(road.go, "b", SLOW_S)  # the other leaves at 1.5 * SLOW_S, but "a" is under way
    assert [at - start for _, at in road.begun] == pytest.approx([0, SLOW_S, 2 * SLOW_S])


class NoTraffic(BatchScheduler):
    async def enter(self) -> float:
        return 0.0

    def leave(self, began: float) -> None: ...


async def test_batches_of_many_kinds_are_larger_for_it(database: Database) -> None:
    """Each is let in when the last is done, and takes along all that came meanwhile."""

    async def mean_size() -> float:
        sizes: list[int] = []
        sql = "SELECT n FROM unnest(CAST(:numbers AS int[])) WITH ORDINALITY AS item (number, n)"
        batches = [Batch(database, Statement(sql), observe=sizes.append) for _ in range(KINDS)]

        async def one(batch: Batch) -> None:
            for number in range(EACH):
                assert await batch(number) is not None

        async with trio.open_nursery() as nursery:
            for batch in batches:
                for _ in range(4):
                    nursery.start_soon(one, batch)
        assert sum(sizes) == KINDS * 4 * EACH
        return sum(sizes) / len(sizes)

    await mean_size()  # the connections are opened by this
    database.scheduler = NoTraffic()
    without = await mean_size()
    database.scheduler = BatchScheduler()
    assert await mean_size() > 1.2 * without


async def test_a_statement_that_waits_keeps_nobody_waiting(database: Database) -> None:
    sleep = Batch(
        database,
        Statement(
            """SELECT n, CAST(pg_sleep(seconds) AS text)
            FROM unnest(CAST(:seconds AS float[])) WITH ORDINALITY AS item (seconds, n)"""
        ),
    )
    quick = Batch(database, Statement("SELECT n FROM unnest(CAST(:x AS int[])) WITH ORDINALITY AS item (x, n)"))
    await quick(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleep, 1.7)  # about as long as a statement may take
        await trio.sleep(0.05)
        began = time.perf_counter()
        for number in range(20):
            await quick(number)
        assert time.perf_counter() - began < 1.5
