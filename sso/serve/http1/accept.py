"""Taking connections in: as many as there are descriptors for, and not too many of one address."""

import errno
import socket
from collections import Counter
from collections.abc import Callable, Hashable
from functools import lru_cache

import structlog
import trio

from sso.core.net import Address, client_network, contains, parse_address
from sso.serve.http1.balance import WorkerSlot
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.server_limits import ServerLimits

AT_ONCE = 40  # of a listener: fewer than may begin in a round (turns.py), so that who asks at once need not wait
BACK_OFF_S = 0.1
POLITE_S = 0.001  # an idle worker is there before, unless the machine has no time for it
PATIENCE = 6
NAMES_KEPT = 4096
_OURS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EFAULT})  # trying again would not help
_log = structlog.get_logger()

Welcome = Callable[[socket.socket, tuple[str, int] | None], None]


class ConnectionLimiter:
    """Counts who is inside."""

    def __init__(self, limits: ServerLimits, place: WorkerSlot | None = None) -> None:
        self.place = place or WorkerSlot()
        self._most = limits.per_address
        self._exempt = limits.exempt
        self._inside: Counter[Hashable] = Counter()
        self._log = RateLimitedLog()

    def enter(self, client: tuple[str, int] | None) -> bool:
        """Proxies speak for many, and who comes by a Unix socket is one of ours."""
        if self._most and client is not None:
            name = _counted_as(client[0])
            if self._inside[name] >= self._most and not contains(self._exempt, _address(client[0])):
                self.say("too many connections of one address", address=client[0])
                return False
            self._inside[name] += 1
        self.place.enter()
        return True

    def leave(self, client: tuple[str, int] | None) -> None:
        self.place.leave()
        if not self._most or client is None:
            return
        name = _counted_as(client[0])
        self._inside[name] -= 1
        if not self._inside[name]:
            del self._inside[name]

    def say(self, event: str, **more: object) -> None:
        self._log(_log.warning, event, **more)


def _address(host: str) -> Address:
    return parse_address(host.partition("%")[0])


@lru_cache(NAMES_KEPT)
def _counted_as(host: str) -> Hashable:
    """An IPv4 address counts alone; a client that has one IPv6 address has the whole /64."""
    return client_network(_address(host)) if ":" in host else host


async def accept_forever(listener: socket.socket, door: ConnectionLimiter, welcome: Welcome) -> None:
    """For ever."""
    courtesy = AcceptBalancer(door.place)
    while True:
        try:
            accept_pending(listener, welcome, await courtesy.turn())
        except OSError as error:
            # Mostly that there are no descriptors left; but a network's errors are told here too (accept(2)).
            if error.errno in _OURS:
                raise
            door.say("a connection could not be taken", reason=error.strerror)
            await trio.sleep(BACK_OFF_S)
        else:
            await trio.lowlevel.wait_readable(listener)


class AcceptBalancer:
    """Who is ahead of the others lets them go first for a moment. Who does not come is waited for a few times more,
    while more and more is taken, and no longer: until something is heard of them again."""

    def __init__(self, place: WorkerSlot) -> None:
        self._place = place
        self._others: list[int] = []
        self._in_vain = 0

    async def turn(self) -> int:
        """How many to take."""
        place = self._place
        self._look()
        if not self._others:
            return AT_ONCE
        room = min(self._others) + place.step - place.inside
        if room > 0:
            return min(room, AT_ONCE)
        if self._in_vain < PATIENCE:
            await trio.sleep(POLITE_S)
            self._in_vain += 1
            self._look()
        return min(place.step << self._in_vain, AT_ONCE)

    def _look(self) -> None:
        others = self._place.others
        if others != self._others:
            self._others, self._in_vain = others, 0


def accept_pending(listener: socket.socket, welcome: Welcome, most: int) -> int:
    """Those that wait now, but not more than so many."""
    for taken in range(most):
        try:
            sock, peer = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return taken
        sock.setblocking(False)
        welcome(sock, None if sock.family == socket.AF_UNIX else peer[:2])
    return most
