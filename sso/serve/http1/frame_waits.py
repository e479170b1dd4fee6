"""Waits for the frames of WebSockets: one epoll object and one task for all of them.

Nearly everything that arrives is the answer to a ping. It is handled here, without waking the task of the WebSocket.
"""

import select
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

import trio
from outcome import Value

_MAX_READ = 8 * 1024
_MAX_EVENTS = 1024  # per call of epoll


class _Reader(NamedTuple):
    sock: socket.socket
    task: trio.lowlevel.Task
    handle: Callable[[bytes], bool]


class FrameWaits:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, _Reader] = {}

    async def read(self, sock: socket.socket, handle: Callable[[bytes], bool]) -> bytes:
        """Returns the next bytes for which ``handle`` returns False; b"" if the client has disconnected."""
        fd = sock.fileno()
        self._readers[fd] = _Reader(sock, trio.lowlevel.current_task(), handle)
        self._epoll.register(fd, select.EPOLLIN)

        def abort(_: Any) -> trio.lowlevel.Abort:
            self._remove(fd)
            return trio.lowlevel.Abort.SUCCEEDED

        data: bytes = await trio.lowlevel.wait_task_rescheduled(abort)
        return data

    async def run(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, _ in self._epoll.poll(0, _MAX_EVENTS):
                self._receive(fd, self._readers[fd])

    def _receive(self, fd: int, reader: _Reader) -> None:
        try:
            data = reader.sock.recv(_MAX_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data and reader.handle(data):
            return
        self._remove(fd)
        trio.lowlevel.reschedule(reader.task, Value(data))

    def _remove(self, fd: int) -> None:
        del self._readers[fd]
        self._epoll.unregister(fd)

    def close(self) -> None:
        self._epoll.close()
