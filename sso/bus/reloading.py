"""Keeps something of the database in the memory of a worker: loads it, and loads it again after each change."""

from collections.abc import Awaitable, Callable

import trio

from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.db.errors import DatabaseError


async def keep_loaded(
    bus: Bus,
    topic: str,
    load: Callable[[], Awaitable[None]],
    log_failure: Callable[[DatabaseError], None],
    *,
    rescans: Rescans = Rescans.OFTEN,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Runs until it is cancelled. The first ``load`` may raise; when a later one fails, what is in memory stays."""
    with bus.subscribe(topic, rescans) as signals:  # before the first load, so that no change is missed
        await load()
        task_status.started()
        while True:
            await signals.receive()
            try:
                await load()
            except DatabaseError as error:
                log_failure(error)
