"""A connection of the load generator. It never waits: what cannot be sent at once is sent when there is room."""

import errno
import select
import socket

from scripts.benchmarks.http_clients import Answer, parse_answer

_CONNECTING = (0, errno.EINPROGRESS)


class ConnectionLost(Exception):
    """The server has closed the connection, or it could not be opened."""


class Connection:
    def __init__(self, address: tuple[str, int], epoll: select.epoll) -> None:
        self._epoll = epoll
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unsent = b""
        self._received = b""
        if self._socket.connect_ex(address) not in _CONNECTING:
            self._socket.close()
            raise ConnectionLost
        self.number = self._socket.fileno()
        epoll.register(self.number, select.EPOLLIN)

    def send(self, data: bytes) -> None:
        self._unsent = data
        self._flush()
        if self._unsent:
            self._epoll.modify(self.number, select.EPOLLIN | select.EPOLLOUT)

    def handle(self, events: int) -> bytes:
        """Goes on after an event of the socket. Returns the bytes that have arrived, of which there may be none."""
        if self._unsent and events & select.EPOLLOUT:
            self._flush()
            if not self._unsent:
                self._epoll.modify(self.number, select.EPOLLIN)
        if not events & ~select.EPOLLOUT:
            return b""
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return b""
        except OSError:
            raise ConnectionLost from None
        if not data:
            raise ConnectionLost
        return data

    def read_answer(self, events: int) -> Answer | None:
        """Returns the answer if it is complete."""
        data = self.handle(events)
        if not data:
            return None
        self._received += data
        answer = parse_answer(self._received)
        if answer is not None:
            self._received = b""
        return answer

    def close(self) -> None:
        self._epoll.unregister(self.number)
        self._socket.close()

    def _flush(self) -> None:
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            if error.errno != errno.ENOTCONN:  # it is still being opened
                raise ConnectionLost from None
