"""Who has left: one epoll for all connections whose handlers want to know, and one task that looks at it.

A task per held request would cost more memory than the request.
"""

import select
import socket
from typing import Protocol

import trio

_GONE = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
_POLL_GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR
_MAX_EVENTS = 1024  # at a time


class DisconnectListener(Protocol):
    def client_left(self) -> None: ...


class DisconnectWatcher:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, DisconnectListener] = {}

    def add(self, fd: int, cancel_on_disconnect: DisconnectListener) -> None:
        self._watched[fd] = cancel_on_disconnect
        # Once: a handler that takes its time to go would otherwise keep the task below busy.
        self._epoll.register(fd, select.EPOLLRDHUP | select.EPOLLONESHOT)

    def remove(self, fd: int) -> None:
        del self._watched[fd]
        self._epoll.unregister(fd)

    async def run(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, event in self._epoll.poll(0, _MAX_EVENTS):
                if event & _GONE and fd in self._watched:
                    self._watched[fd].client_left()

    def close(self) -> None:
        self._epoll.close()


def has_left(sock: socket.socket) -> bool:
    """Whether the client has closed its side, as far as is known by now."""
    poll = select.poll()
    poll.register(sock, _POLL_GONE)
    return bool(poll.poll(0))
