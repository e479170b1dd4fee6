"""Taking connections in: as many as there are descriptors for, and not too many of one address."""

import errno
import socket
from collections import Counter
from collections.abc import Callable

import structlog
import trio

from sso.core.net import contains, parse_address
from sso.serve.lane.places import Place
from sso.serve.limits import Limits

AT_ONCE = 40  # fewer than may begin in a round of the loop (turns.py), so that those who ask at once need not wait
BACK_OFF_S = 0.1
POLITE_S = 0.001  # an idle worker is there long before, and a connection that nobody else wants hardly notices
SAY_S = 10.0  # between two lines about the same thing
_OURS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EFAULT})  # trying again would not help
_log = structlog.get_logger()

Welcome = Callable[[socket.socket, tuple[str, int] | None], None]


class Door:
    """Counts who is inside."""

    def __init__(self, limits: Limits, place: Place | None = None) -> None:
        self.place = place or Place()
        self._most = limits.per_address
        self._exempt = limits.exempt
        self._inside: Counter[str] = Counter()
        self._said: dict[str, float] = {}

    def enter(self, client: tuple[str, int] | None) -> bool:
        """Proxies speak for many, and who comes by a Unix socket is one of ours."""
        if self._most and client is not None:
            host = client[0]
            if self._inside[host] >= self._most and not contains(self._exempt, parse_address(host.partition("%")[0])):
                self.say("too many connections of one address", address=host)
                return False
            self._inside[host] += 1
        self.place.enter()
        return True

    def leave(self, client: tuple[str, int] | None) -> None:
        self.place.leave()
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
            take(listener, welcome, await _turn(door.place))
        except OSError as error:
            # Mostly that there are no descriptors left; but a network's errors are told here too (accept(2)).
            if error.errno in _OURS:
                raise
            door.say("a connection could not be taken", reason=error.strerror)
            await trio.sleep(BACK_OFF_S)
        else:
            await trio.lowlevel.wait_readable(listener)


async def _turn(place: Place) -> int:
    """How many to take. Who is ahead of the others takes what they have left after a moment."""
    room = place.room
    if room is None:
        return AT_ONCE
    if room <= 0:
        await trio.sleep(POLITE_S)
        room = place.step
    return min(room, AT_ONCE)


def take(listener: socket.socket, welcome: Welcome, most: int) -> int:
    """Those that wait now, but not more than so many."""
    for taken in range(most):
        try:
            sock, peer = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return taken
        sock.setblocking(False)
        welcome(sock, None if sock.family == socket.AF_UNIX else peer[:2])
    return most
