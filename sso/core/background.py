"""Keeps a background task running: an unexpected error is logged, and the task starts again after a pause."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import structlog
import trio

FIRST_PAUSE_S, LAST_PAUSE_S = 0.5, 30.0
current_task_name: ContextVar[str | None] = ContextVar("current_task_name", default=None)  # shown in each log line
log = structlog.get_logger()


class _Status:
    """Forwards the first call of ``started``."""

    def __init__(self, status: trio.TaskStatus[None]) -> None:
        self._status = status
        self.has_started = False

    def started(self, value: None = None) -> None:
        if not self.has_started:
            self.has_started = True
            self._status.started(value)


async def keep_running(
    name: str,
    task: Callable[..., Awaitable[None]],
    *arguments: Any,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Runs ``task`` until it returns, and again if it fails. An error before it has started is raised."""
    current_task_name.set(name)
    status = _Status(task_status)
    pause = FIRST_PAUSE_S
    while True:
        began = trio.current_time()
        try:
            return await task(*arguments, task_status=status)
        except Exception as error:
            if not status.has_started:
                raise
            log.error("background.task_failed", task=name, exc_info=error)
        if trio.current_time() - began > LAST_PAUSE_S:
            pause = FIRST_PAUSE_S
        await trio.sleep(pause)
        pause = min(2 * pause, LAST_PAUSE_S)
