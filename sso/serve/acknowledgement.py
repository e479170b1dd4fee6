"""Finds out whether the client has received the bytes that were written to its socket.

A write only passes bytes to the kernel. They are lost if the client, or the proxy in front of the service, has
disappeared or has reset the connection. The kernel knows which bytes the other side has acknowledged.
"""

import fcntl
import select
import socket
import sys
import termios

import trio

WAIT_S = 2.0  # clients with a slow network acknowledge within this time
FIRST_PAUSE_S = 0.001
MAX_PAUSE_S = 0.1


async def is_acknowledged(sock: socket.socket, *, may_read: bool) -> bool:
    """Waits until the client has acknowledged everything. Returns False if it does not, or resets the connection.

    ``may_read`` says that no other task reads from the socket. The client's next request then ends the pause.
    A socket that the server has closed counts as acknowledged: the kernel still sends what was written before.
    """
    pause_s, end = FIRST_PAUSE_S, trio.current_time() + WAIT_S
    while not _is_closed(sock) and _unacknowledged_bytes(sock):
        if trio.current_time() >= end:
            return False
        with trio.move_on_after(pause_s) as pause:
            if may_read:
                await trio.lowlevel.wait_readable(sock)
            else:
                await trio.sleep_forever()
        may_read = may_read and pause.cancelled_caught  # what has arrived stays readable, and would end every pause
        pause_s = min(2 * pause_s, MAX_PAUSE_S)
    return _is_closed(sock) or not _is_reset(sock)


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
