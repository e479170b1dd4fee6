"""The far side of the bridge: what is ready there runs at once, and everything asyncio promises still holds."""

import asyncio
import contextvars
import socket
import tracemalloc

import pytest
import trio

from sso.db.asyncio_loop import AT_ONCE, MAX_READ, FastAsyncioLoop
from sso.db.database import Database


async def test_a_coroutine_begins_at_once() -> None:
    began = []

    async def work() -> str:
        began.append(True)
        await asyncio.sleep(0)
        return "done"

    async with FastAsyncioLoop.open() as loop:
        running = loop.run(work())
        with pytest.raises(StopIteration) as stopped:
            running.send(None)  # not a single turn of anybody else
    assert began
    assert stopped.value.value == "done"


async def test_it_is_the_running_loop_inside_and_not_outside() -> None:
    async def inside() -> object:
        await asyncio.sleep(0.001)
        return asyncio.get_running_loop()

    async def elsewhere() -> None:
        """A task that knows nothing of the loop, as that of a request."""
        assert await loop.run(inside()) is loop
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()

    outside = contextvars.copy_context()
    async with FastAsyncioLoop.open() as loop, trio.open_nursery() as nursery:
        outside.run(nursery.start_soon, elsewhere)


async def test_errors_and_results_come_back() -> None:
    async def bad() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    async def worse() -> None:
        raise ValueError

    async with FastAsyncioLoop.open() as loop:
        with pytest.raises(KeyError):
            await loop.run(bad())
        with pytest.raises(ValueError):
            await loop.run(worse())


async def test_timers_and_cancelling_work() -> None:
    async def stuck() -> None:
        async with asyncio.timeout(0.02):
            await asyncio.sleep(60)

    async with FastAsyncioLoop.open() as loop:
        with pytest.raises(TimeoutError):
            await loop.run(stuck())
        with trio.move_on_after(0.02) as scope:
            await loop.run(asyncio.sleep(60))
        assert scope.cancelled_caught


async def test_sockets_are_read_in_order_by_many_at_once() -> None:
    async def echo(number: int) -> bytes:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        other_reader, other_writer = await asyncio.open_connection(sock=theirs)
        for piece in range(20):
            writer.write(b"%d-%d\n" % (number, piece))
            other_writer.write(await other_reader.readline())
        lines = b"".join([await reader.readline() for _ in range(20)])
        writer.close()
        other_writer.close()
        return lines

    async def check(number: int) -> None:
        assert await loop.run(echo(number)) == b"".join(b"%d-%d\n" % (number, piece) for piece in range(20))

    async with FastAsyncioLoop.open() as loop, trio.open_nursery() as nursery:
        for number in range(30):
            nursery.start_soon(check, number)


async def test_whoever_never_waits_does_not_keep_others_from_their_turn() -> None:
    turns = 0

    async def restless() -> None:
        nonlocal turns
        while turns < 5 * AT_ONCE:
            turns += 1
            await asyncio.sleep(0)

    async with FastAsyncioLoop.open() as loop, trio.open_nursery() as nursery:
        nursery.start_soon(loop.run, restless())
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert turns < 5 * AT_ONCE


async def test_what_was_to_be_called_is_called_before_the_loop_ends() -> None:
    called: list[int] = []
    async with FastAsyncioLoop.open() as loop:
        loop.call_soon(called.append, 1)
        loop.call_soon(called.append, 2)
    assert called == [1, 2]


async def test_a_loop_that_has_ended_says_so() -> None:
    async with FastAsyncioLoop.open() as loop:
        pass
    work = asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await loop.run(work)
    work.close()


async def test_what_is_read_takes_little_memory_while_it_is_read(database: Database) -> None:
    await database.run_sql("SELECT 1 AS n", [])
    tracemalloc.start()
    try:
        await database.run_sql("SELECT 1 AS n", [])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2 * MAX_READ


async def test_an_answer_larger_than_what_is_read_at_once_is_whole(database: Database) -> None:
    (row,) = await database.run_sql("SELECT repeat('x', $1) AS text", [10 * MAX_READ])
    assert row["text"] == "x" * (10 * MAX_READ)
