"""The event loop of trio-asyncio with fewer rounds: a ready callback runs at once, in the Trio task that made it ready.

trio-asyncio sends each callback through a channel to a task of its own. A statement takes five callbacks, and each of
them waits for its turn among all other Trio tasks: together that takes four times as long as the driver itself.

This relies on private parts of asyncio and trio-asyncio; tests/test_private_dependencies.py names them.
"""

import asyncio
from asyncio.selector_events import _SelectorSocketTransport  # type: ignore[attr-defined]
from asyncio.sslproto import SSLProtocol
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio_asyncio
from sniffio import thread_local as sniffio_library
from trio_asyncio import TrioEventLoop, current_loop

T = TypeVar("T")

MAX_CALLBACKS = 1000  # that run before other Trio tasks get a turn
MAX_READ = 32 * 1024  # bytes; a response of the database has a few hundred

# asyncio allocates 256 KiB for each read and then shrinks the buffer. Objects that are allocated meanwhile fragment the
# heap, which grows step by step.
_SelectorSocketTransport.max_size = MAX_READ
SSLProtocol.max_size = MAX_READ


class FastAsyncioLoop(TrioEventLoop):  # type: ignore[misc]
    _ready_now: deque[asyncio.Handle]
    _is_scheduled = False  # _run_ready is running or will run
    _is_stopping = False

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator["FastAsyncioLoop"]:
        async with trio_asyncio.open_loop() as loop:
            # open_loop takes no class. A TrioEventLoop has all attributes that this class needs, but one.
            loop.__class__ = cls
            loop._ready_now = deque()
            yield loop

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Like ``run_aio_coroutine``, but the coroutine starts at once."""
        self._is_scheduled = True
        try:
            task = self.create_task(coroutine)
        finally:
            self._run_ready()
        result: T = task.result() if task.done() else await self.run_aio_future(task)
        return result

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        """Like the original, without its check of the callback, which asyncio itself does only in debug mode."""
        return self._queue_handle(asyncio.Handle(callback, args, self, context))

    def _queue_handle(self, handle: asyncio.Handle) -> asyncio.Handle:
        self._check_closed()
        if type(handle) is not asyncio.Handle or self._is_stopping:
            # Timers, Trio tasks, and the callback that stops the loop after all others.
            self._q_send.send_nowait(handle)
        else:
            self._ready_now.append(handle)
            self._schedule()
        return handle

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._q_send.send_nowait(asyncio.Handle(self._run_ready, (), self))

    def _run_ready(self) -> None:
        ready = self._ready_now
        library, sniffio_library.name = sniffio_library.name, "asyncio"
        token = current_loop.set(self)
        self._is_scheduled = True
        try:
            for _ in range(MAX_CALLBACKS):
                if not ready:
                    break
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
        finally:
            self._is_scheduled = False
            current_loop.reset(token)
            sniffio_library.name = library
            if ready:
                self._schedule()

    async def _io_task(self, fd: Any, handle: Any, wait_ready: Callable[[Any], Awaitable[None]]) -> None:
        """Calls the handle whenever the socket is readable, or writable, until the handle is cancelled."""
        with handle._scope:
            try:
                while not handle._cancelled:
                    try:
                        await wait_ready(fd)
                    except OSError:
                        if not handle._cancelled:  # a cancelled handle's socket may be closed
                            raise
                    if not handle._cancelled:
                        self._ready_now.append(handle)
                        self._run_ready()
            except Exception as error:
                handle._raise(error)

    def stop(self, waiter: Any = None) -> Any:
        self._run_ready()
        self._is_stopping = True
        return super().stop(waiter)
