"""Calls that share a batch."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import trio
import trio.testing

from sso.db.batch import scheduler
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement_batch import Batch
from tests.kit.row_locks import locked_by_another_transaction

Calls = Sequence[Callable[[], Awaitable[Any]]]


async def in_one_batch(
    batch: Batch | SkipLockedBatch, calls: Calls, done: Callable[[int], None] = lambda _: None
) -> list[Any]:
    """Runs the calls in one statement, in this order, and returns their results. ``done`` is called after each call.

    A call may go on after the statement. Of a SkipLockedBatch, it is the statement that skips locked rows.
    """
    first = batch._skipping if isinstance(batch, SkipLockedBatch) else batch
    results: list[Any] = [None] * len(calls)
    sizes: list[int] = []
    first._observe = sizes.append

    async def run(n: int) -> None:
        results[n] = await calls[n]()
        done(n)

    # The batch waits for its turn, however slow this machine is, and takes all calls that wait.
    with patch.object(scheduler, "SLOW_S", 60.0):
        running = [await first._database.scheduler.enter() for _ in range(scheduler.MAX_QUICK)]
        async with trio.open_nursery() as nursery:
            for n in range(len(calls)):
                nursery.start_soon(run, n)
                await trio.testing.wait_all_tasks_blocked()  # so that they join the batch in this order
            for began in running:
                first._database.scheduler.leave(began)
    assert sizes == [len(calls)]
    return results


async def while_locked(dsn: str, sql: str, batch: Batch | SkipLockedBatch, calls: Calls) -> list[Any]:
    """Runs the calls in one batch while another transaction has locked rows of the first call, which ends last.

    The lock is held until all other calls are done.
    """
    with ExitStack() as lock:
        lock.enter_context(locked_by_another_transaction(dsn, sql))
        order: list[int] = []

        def done(n: int) -> None:
            order.append(n)
            if len(order) == len(calls) - 1:
                lock.close()

        results = await in_one_batch(batch, calls, done)
    assert order[-1] == 0
    return results
