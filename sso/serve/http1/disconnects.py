"""Notices clients that disconnect while their handlers wait: one epoll object and one task for all connections.

A task per waiting request would use more memory than the request itself.
"""

import select
import socket
from collections import Counter
from typing import Protocol

import trio

_DISCONNECTED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
_POLL_DISCONNECTED = select.POLLRDHUP | select.POLLHUP | select.POLLERR
_MAX_EVENTS = 1024  # per call of epoll


class DisconnectListener(Protocol):
    def client_disconnected(self) -> None: ...


class DisconnectWatcher:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._listeners: dict[int, DisconnectListener] = {}
        self._further: Counter[int] = Counter()  # how often a connection was added again

    def add(self, fd: int, listener: DisconnectListener) -> None:
        """Tells the listener of a disconnect. Call ``remove`` as often as this."""
        if fd in self._listeners:
            self._further[fd] += 1
            return
        self._listeners[fd] = listener
        # One-shot: while a cancelled handler still cleans up, its event must not keep the task below busy.
        self._epoll.register(fd, select.EPOLLRDHUP | select.EPOLLONESHOT)

    def remove(self, fd: int) -> None:
        if self._further[fd]:
            self._further[fd] -= 1
            return
        del self._listeners[fd]
        self._epoll.unregister(fd)

    async def run(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, event in self._epoll.poll(0, _MAX_EVENTS):
                if event & _DISCONNECTED and fd in self._listeners:
                    self._listeners[fd].client_disconnected()

    def close(self) -> None:
        self._epoll.close()


def has_disconnected(sock: socket.socket) -> bool:
    """Returns whether the kernel knows that the client has closed its side of the connection."""
    poll = select.poll()
    poll.register(sock, _POLL_DISCONNECTED)
    return bool(poll.poll(0))


def is_readable(sock: socket.socket) -> bool:
    """Returns whether bytes have arrived that were not read yet."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
