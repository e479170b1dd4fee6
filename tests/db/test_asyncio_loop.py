"""The asyncio loop inside Trio runs ready callbacks at once and otherwise behaves like asyncio's own."""

import asyncio
import contextvars
import socket
import tracemalloc

import pytest
import trio

from sso.db.asyncio_loop import MAX_CALLBACKS, MAX_READ, FastAsyncioLoop
from sso.db.database import Database


async def test_coroutine_starts_and_runs_without_a_round_of_the_trio_loop() -> None:
    started = []

    async def work() -> str:
        started.append(True)
        await asyncio.sleep(0)
        return "done"

    async with FastAsyncioLoop.open() as loop:
        running = loop.run(work())
        with pytest.raises(StopIteration) as stopped:
            running.send(None)  # no other Trio task runs in between
    assert started
    assert stopped.value.value == "done"


async def test_loop_is_the_running_loop_inside_its_coroutines_only() -> None:
    async def inside() -> object:
        await asyncio.sleep(0.001)
        return asyncio.get_running_loop()

    async def request() -> None:
        """A task outside the context of the loop, like that of a request."""
        assert await loop.run(inside()) is loop
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()

    outside = contextvars.copy_context()
    async with FastAsyncioLoop.open() as loop, trio.open_nursery() as nursery:
        outside.run(nursery.start_soon, request)


async def test_errors_of_coroutines_reach_the_caller() -> None:
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


async def test_timers_and_cancellation_are_supported() -> None:
    async def stuck() -> None:
        async with asyncio.timeout(0.02):
            await asyncio.sleep(60)

    async with FastAsyncioLoop.open() as loop:
        with pytest.raises(TimeoutError):
            await loop.run(stuck())
        with trio.move_on_after(0.02) as scope:
            await loop.run(asyncio.sleep(60))
        assert scope.cancelled_caught


async def test_concurrent_coroutines_read_their_sockets_in_order() -> None:
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


async def test_coroutine_that_never_waits_does_not_block_other_trio_tasks() -> None:
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while turns < 5 * MAX_CALLBACKS:
            turns += 1
            await asyncio.sleep(0)

    async with FastAsyncioLoop.open() as loop, trio.open_nursery() as nursery:
        nursery.start_soon(loop.run, spin())
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert turns < 5 * MAX_CALLBACKS


async def test_pending_callbacks_run_before_the_loop_closes() -> None:
    called: list[int] = []
    async with FastAsyncioLoop.open() as loop:
        loop.call_soon(called.append, 1)
        loop.call_soon(called.append, 2)
    assert called == [1, 2]


async def test_closed_loop_raises_runtime_error() -> None:
    async with FastAsyncioLoop.open() as loop:
        pass
    work = asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await loop.run(work)
    work.close()


async def test_read_buffer_is_small(database: Database) -> None:
    await database.run_sql("SELECT 1 AS n", [])
    tracemalloc.start()
    try:
        await database.run_sql("SELECT 1 AS n", [])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * MAX_READ


async def test_response_larger_than_the_read_buffer_is_complete(database: Database) -> None:
    (row,) = await database.run_sql("SELECT repeat('x', $1) AS text", [10 * MAX_READ])
    assert row["text"] == "x" * (10 * MAX_READ)
