"""Finds out whether the client has received the bytes that were written to its socket.

A write only passes bytes to the kernel. They are lost if the client, or the proxy in front of the service, has
disappeared or has reset the connection. The kernel knows which bytes the other side has acknowledged, also after a
reset: a client may reset its connection as soon as it has read the response.
"""

import fcntl
import select
import socket
import struct
import sys
import termios

import trio

WAIT_S = 2.0  # clients with a slow network acknowledge within this time
FIRST_PAUSE_S = 0.001
MAX_PAUSE_S = 0.1

_TCP_INFO = getattr(socket, "TCP_INFO", None)
_BYTES_ACKED = struct.Struct("=120xQ")  # ``tcpi_bytes_acked`` in ``struct tcp_info``, since Linux 4.1


class ResponseBytes:
    """The bytes of one response. Create it before the first of them is written, and `add` what is written."""

    __slots__ = ("_end", "_sock")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._end = _written_bytes(sock)  # how many bytes must be acknowledged; None if the kernel does not tell

    def add(self, count: int) -> None:
        if self._end is not None:
            self._end += count

    async def are_acknowledged(self) -> bool:
        """Waits until the client has acknowledged everything. Returns False if it does not.

        After a reset, the acknowledged bytes decide. Where the kernel does not tell them, a reset counts as not
        acknowledged. The client's next request ends the pause, so no other task may read from the socket meanwhile. A
        socket that the server has closed counts as acknowledged: the kernel still sends what was written before.
        """
        sock, pause_s, end = self._sock, FIRST_PAUSE_S, trio.current_time() + WAIT_S
        nothing_arrived = True
        while not _is_closed(sock):
            if _is_reset(sock):
                return self._are_all_acknowledged()
            if not _unacknowledged_bytes(sock):
                return not _is_reset(sock) or self._are_all_acknowledged()
            if trio.current_time() >= end:
                return False
            with trio.move_on_after(pause_s) as pause:
                if nothing_arrived:
                    await trio.lowlevel.wait_readable(sock)
                else:
                    await trio.sleep_forever()
            # What has arrived stays readable, and would end every pause.
            nothing_arrived = nothing_arrived and pause.cancelled_caught
            pause_s = min(2 * pause_s, MAX_PAUSE_S)
        return True

    def _are_all_acknowledged(self) -> bool:
        acknowledged = _acknowledged_bytes(self._sock)
        return acknowledged is not None and self._end is not None and acknowledged >= self._end


def _written_bytes(sock: socket.socket) -> int | None:
    """Returns how many bytes were written to the socket; None if the kernel does not tell, or no longer."""
    if _is_closed(sock) or _is_reset(sock):
        return None
    acknowledged = _acknowledged_bytes(sock)
    while acknowledged is not None:
        total, before = acknowledged + _unacknowledged_bytes(sock), acknowledged
        acknowledged = _acknowledged_bytes(sock)
        if acknowledged == before:  # else some were acknowledged between the two calls
            return total
    return None


def _acknowledged_bytes(sock: socket.socket) -> int | None:
    """Returns how many bytes the client has acknowledged; None for a Unix socket, or if the kernel does not tell."""
    if _TCP_INFO is None:
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _BYTES_ACKED.size)
    except OSError:
        return None
    if len(info) < _BYTES_ACKED.size:
        return None
    (count,) = _BYTES_ACKED.unpack(info)
    return int(count)


def _is_closed(sock: socket.socket) -> bool:
    return sock.fileno() < 0


def _unacknowledged_bytes(sock: socket.socket) -> int:
    count = bytearray(4)
    fcntl.ioctl(sock, termios.TIOCOUTQ, count)
    return int.from_bytes(count, sys.byteorder)


def _is_reset(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, 0)  # errors are always reported
    reset = select.POLLERR if sock.family == socket.AF_UNIX else select.POLLERR | select.POLLHUP
    return any(event & reset for _, event in poll.poll(0))
