"""Whether a client has received what was sent to it, as far as the kernel knows.

A write only passes bytes to the kernel. If the client, or the proxy before it, has gone without a word, or has given up
the connection, nobody gets them.
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

    With ``may_read``, nobody else reads from the socket: then the client's next request ends the pause.
    """
    pause_s, end = FIRST_PAUSE_S, trio.current_time() + WAIT_S
    while _unacknowledged_bytes(sock):
        if trio.current_time() >= end:
            return False
        with trio.move_on_after(pause_s) as pause:
            if may_read:
                await trio.lowlevel.wait_readable(sock)
            else:
                await trio.sleep_forever()
        may_read = may_read and pause.cancelled_caught  # what has arrived stays readable, and would end every pause
        pause_s = min(2 * pause_s, MAX_PAUSE_S)
    return not _is_reset(sock)


def _unacknowledged_bytes(sock: socket.socket) -> int:
    count = bytearray(4)
    fcntl.ioctl(sock, termios.TIOCOUTQ, count)
    return int.from_bytes(count, sys.byteorder)


def _is_reset(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, 0)  # errors are always reported
    reset = select.POLLERR if sock.family == socket.AF_UNIX else select.POLLERR | select.POLLHUP
    return any(event & reset for _, event in poll.poll(0))
