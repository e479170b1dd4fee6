"""Waiting for a condition in asynchronous tests, so that they do not depend on the speed of the machine."""

import time
from collections.abc import Callable

import trio

from sso.db.statement import Statement
from sso.db.transaction import Runner

LIMIT_S = 60.0

_PAUSE = Statement("SELECT pg_sleep(0.005)")
_BLOCKED = Statement(
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
)


async def until_true(condition: Callable[[], bool]) -> None:
    """Raises trio.TooSlowError if the condition is not true in time."""
    with trio.fail_after(LIMIT_S):
        while not condition():  # noqa: ASYNC110 - the condition has no event
            await trio.sleep(0.005)


async def until_blocking(tx: Runner, condition: Callable[[], bool] = lambda: True) -> None:
    """Waits until another transaction waits for a lock of this one, and until the condition is true.

    For the function of a transaction, which may await nothing but its statements.
    """
    end = time.monotonic() + LIMIT_S
    while not (condition() and await tx.value(_BLOCKED)):
        assert time.monotonic() < end, "no other transaction waits for this one"
        await tx.value(_PAUSE)
