"""trio-asyncio's event loop with fewer rounds: what is ready on the far side runs at once, in the task that made it so.

As it comes, each callback goes through a channel to a task of its own, and a statement is five of them: every one waits
for its turn among all that happens on this side. Together that takes four times as long as the driver itself.
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

AT_ONCE = 1000  # callbacks that run before others get a turn; something is wrong if there are ever as many
MAX_READ = 32 * 1024  # an answer is a few hundred bytes

# For each of them asyncio asks for 256 KiB and gives back what was not needed. What is allocated meanwhile, and stays,
# lies in the middle of that: soon there is no such place left, and the heap grows by another one, step by step.
_SelectorSocketTransport.max_size = MAX_READ
SSLProtocol.max_size = MAX_READ


class FastAsyncioLoop(TrioEventLoop):  # type: ignore[misc]
    _ready_now: deque[asyncio.Handle]
    _is_awake = False  # somebody runs what is ready, or is about to
    _is_stopping = False

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator["FastAsyncioLoop"]:
        async with trio_asyncio.open_loop() as loop:
            # It takes no class, and the one it makes has nothing that this one lacks.
            loop.__class__ = cls
            loop._ready_now = deque()
            yield loop

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Like ``run_aio_coroutine``, and it begins at once."""
        self._is_awake = True
        try:
            task = self.create_task(coroutine)
        finally:
            self._run_ready()
        result: T = task.result() if task.done() else await self.run_aio_future(task)
        return result

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        """Without a look at what is called: asyncio itself takes that only when debugging."""
        return self._queue_handle(asyncio.Handle(callback, args, self, context))

    def _queue_handle(self, handle: asyncio.Handle) -> asyncio.Handle:
        self._check_closed()
        if type(handle) is not asyncio.Handle or self._is_stopping:
            # Timers, tasks of Trio's, and what must come after all that there was.
            self._q_send.send_nowait(handle)
        else:
            self._ready_now.append(handle)
            self._wake()
        return handle

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._q_send.send_nowait(asyncio.Handle(self._run_ready, (), self))

    def _run_ready(self) -> None:
        ready = self._ready_now
        library, sniffio_library.name = sniffio_library.name, "asyncio"
        before = current_loop.set(self)
        self._is_awake = True
        try:
            for _ in range(AT_ONCE):
                if not ready:
                    break
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
        finally:
            self._is_awake = False
            current_loop.reset(before)
            sniffio_library.name = library
            if ready:
                self._wake()

    async def _io_task(self, fd: Any, handle: Any, wait_ready: Callable[[Any], Awaitable[None]]) -> None:
        """A socket that is read from, or written to, until nobody wants that any more."""
        with handle._scope:
            try:
                while not handle._cancelled:
                    try:
                        await wait_ready(fd)
                    except OSError:
                        if not handle._cancelled:  # else it was closed, and that is why
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
