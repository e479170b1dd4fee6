"""Taking connections in: as many as there are descriptors for, and not too many of one address."""

import errno
import socket
from collections import Counter
from collections.abc import Callable

import structlog
import trio

from sso.core.net import contains, parse_address
from sso.serve.limits import Limits

AT_ONCE = 64
BACK_OFF_S = 0.1
SAY_S = 10.0  # between two lines about the same thing
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_log = structlog.get_logger()

Welcome = Callable[[socket.socket, tuple[str, int] | None], None]


class Door:
    """Counts who is inside."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.per_address
        self._exempt = limits.exempt
        self._inside: Counter[str] = Counter()
        self._said: dict[str, float] = {}

    def enter(self, client: tuple[str, int] | None) -> bool:
        """Proxies speak for many, and who comes by a Unix socket is one of ours."""
        if not self._most or client is None:
            return True
        host = client[0]
        if self._inside[host] >= self._most and not contains(self._exempt, parse_address(host.partition("%")[0])):
            self.say("too many connections of one address", address=host)
            return False
        self._inside[host] += 1
        return True

    def leave(self, client: tuple[str, int] | None) -> None:
        if not self._most or client is None:
            return
        self._inside[client[0]] -= 1
        if not self._inside[client[0]]:
            del self._inside[client[0]]

    def say(self, event: str, **more: object) -> None:
        now = trio.current_time()
        if now >= self._said.get(event, 0.0):
            self._said[event] = now + SAY_S
            _log.warning(event, **more)


async def accept(listener: socket.socket, door: Door, welcome: Welcome) -> None:
    """For ever."""
    while True:
        try:
            taken = take(listener, welcome)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            door.say("no descriptors are left for connections", reason=error.strerror)
            await trio.sleep(BACK_OFF_S)
        else:
            if taken < AT_ONCE:
                await trio.lowlevel.wait_readable(listener)
            else:
                await trio.lowlevel.checkpoint()


def take(listener: socket.socket, welcome: Welcome) -> int:
    """Those that wait now, but not more than a handful."""
    for taken in range(AT_ONCE):
        try:
            sock, peer = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return taken
        sock.setblocking(False)
        if sock.family == socket.AF_UNIX:
            welcome(sock, None)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            welcome(sock, peer[:2])
    return AT_ONCE
