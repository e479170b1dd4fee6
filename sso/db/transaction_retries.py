"""Runs a transaction again that others were in the way of. It has no connection during the pauses."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from sso.db.errors import LockTimeout, TransactionConflict, Unavailable

T = TypeVar("T")

MAX_ATTEMPTS = 5  # for a transaction that conflicts with others
LOCK_PAUSE_S = (0.02, 0.2)  # at least and at most, before a transaction waits for a lock again


async def retry_conflicts(run: Callable[[], Awaitable[T]]) -> T:
    """Returns ``run()``, called again after a TransactionConflict. Raises Unavailable if that does not help."""
    reason = ""
    for attempt in range(MAX_ATTEMPTS):
        try:
            return await run()
        except TransactionConflict as error:
            reason = str(error)
            await trio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - jitter, not a secret
    raise Unavailable(f"too many conflicts: {reason}")


async def retry_lock_timeouts(seconds: float, run: Callable[[], Awaitable[T]]) -> T:
    """Returns ``run()``, called again while locks of others are in its way. Raises LockTimeout after ``seconds``."""
    give_up_at = trio.current_time() + seconds
    while True:
        try:
            return await run()
        except LockTimeout:
            if trio.current_time() > give_up_at:
                raise
        await trio.sleep(random.uniform(*LOCK_PAUSE_S))  # noqa: S311 - jitter, not a secret
