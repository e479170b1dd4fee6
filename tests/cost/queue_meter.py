"""Measures the CPU time that the threads of each queue of the service need. A queue has the name of its module."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import trio

from sso.core.thread_pool import ThreadPool

_SHARED_MODULES = ("sso.core.thread_pool", "sso.core.fair_thread")  # their users name the queue


class QueueMeter:
    def __init__(self) -> None:
        self.cpu_s: dict[str, float] = {}  # by the name of the queue, since this was last emptied
        self._names: dict[int, str] = {}  # of pools

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Measures the thread pools that are created meanwhile, and other threads that are used meanwhile."""
        create, run, run_anywhere = ThreadPool.__init__, ThreadPool.run, trio.to_thread.run_sync

        def created(pool: ThreadPool, max_threads: int) -> None:
            self._names[id(pool)] = _module_of_caller()
            create(pool, max_threads)

        async def run_in_pool(pool: ThreadPool, function: Callable[..., Any], *arguments: Any) -> Any:
            return await run(pool, self._measure, self._names.get(id(pool), ""), function, arguments)

        async def run_in_any_thread(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            return await run_anywhere(self._measure, function.__module__, function, arguments, **options)

        with (
            mock.patch.object(ThreadPool, "__init__", created),
            mock.patch.object(ThreadPool, "run", run_in_pool),
            mock.patch.object(trio.to_thread, "run_sync", run_in_any_thread),
        ):
            yield

    def _measure(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Called in the thread."""
        began = time.thread_time()
        try:
            return function(*arguments)
        finally:
            self.cpu_s[name] = self.cpu_s.get(name, 0.0) + time.thread_time() - began


def _module_of_caller() -> str:
    frame = sys._getframe(2)
    while frame.f_globals["__name__"] in _SHARED_MODULES and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals["__name__"])
