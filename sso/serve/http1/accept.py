"""Accepts connections, limits their number per client address, and lets workers with fewer connections go first."""

import errno
import socket
from collections import Counter
from collections.abc import Callable, Hashable
from functools import lru_cache

import structlog
import trio

from sso.core.net import SITE_FACTOR, Address, client_networks, contains, parse_address
from sso.serve.http1.admission import Admission
from sso.serve.http1.balance import WorkerSlot
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.server_limits import ServerLimits

MAX_BATCH = 40  # connections accepted in a row; fewer than pacing.MAX_STARTS, so their requests need not wait
OVERLOAD_BATCH = 500
SLOW_TURN_S = 0.05  # between two batches of a process that has much to do
MAX_FACTOR = 8
BACK_OFF_S = 0.1
YIELD_S = 0.001  # an idle worker accepts sooner than this, unless the machine is overloaded
MAX_YIELDS = 6
MAX_CACHED_ADDRESSES = 4096
_FATAL_ERRORS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EFAULT})  # retrying cannot help
_log = structlog.get_logger()

OnConnection = Callable[[socket.socket, tuple[str, int] | None], None]


class ConnectionLimiter:
    """Counts the open connections of this worker, in total and per client address."""

    def __init__(self, limits: ServerLimits, slot: WorkerSlot | None = None) -> None:
        self.slot = slot or WorkerSlot()
        self._max_per_address = limits.per_address
        self._exempt = limits.exempt
        self._open: Counter[Hashable] = Counter()
        self._log = RateLimitedLog()

    def admit(self, client: tuple[str, int] | None) -> bool:
        """Counts a new connection. Returns False, without counting it, if its address has too many.

        Connections of trusted proxies and of Unix sockets are not limited: they carry requests of many clients.
        """
        if self._max_per_address and client is not None:
            limits = _limits_of(client[0])
            is_full = any(self._open[key] >= factor * self._max_per_address for key, factor in limits)
            if is_full and not contains(self._exempt, _address(client[0])):
                self._log(_log.warning, "http.connection_limit_reached", address=client[0])
                return False
            self._open.update(key for key, _ in limits)
        self.slot.add_connection()
        return True

    def release(self, client: tuple[str, int] | None) -> None:
        self.slot.remove_connection()
        if not self._max_per_address or client is None:
            return
        for key, _ in _limits_of(client[0]):
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]

    def report_accept_failure(self, error: OSError) -> None:
        self._log(_log.warning, "http.accept_failed", reason=error.strerror)


def _address(host: str) -> Address:
    return parse_address(host.partition("%")[0])


@lru_cache(MAX_CACHED_ADDRESSES)
def _limits_of(host: str) -> tuple[tuple[Hashable, int], ...]:
    """Returns what a connection counts for, and how many times the limit that may have.

    This is the IPv4 address, or the /64 of an IPv6 address, of which a client usually has all, and the /48 around it.
    """
    if ":" not in host:
        return ((host, 1),)
    network, site = client_networks(_address(host))
    return ((network, 1),) if site is None else ((network, 1), (site, SITE_FACTOR))


async def accept_forever(
    listener: socket.socket, limiter: ConnectionLimiter, on_connection: OnConnection, admission: Admission | None = None
) -> None:
    admission = admission or Admission()
    balancer = AcceptBalancer(limiter.slot)
    backlog = Backlog()
    while True:
        try:
            # Clients that wait in the backlog would learn late that the process is overloaded.
            limit = OVERLOAD_BATCH if admission.is_overloaded else await balancer.next_batch_size() * backlog.factor()
            backlog.is_left = accept_pending(listener, on_connection, limit) == limit
        except OSError as error:
            # Usually no file descriptors are left; pending network errors are reported here as well (accept(2)).
            if error.errno in _FATAL_ERRORS:
                raise
            limiter.report_accept_failure(error)
            await trio.sleep(BACK_OFF_S)
        else:
            await trio.lowlevel.wait_readable(listener)


class Backlog:
    """Makes batches larger while connections are left over and the process is busy.

    Otherwise a process accepts about as many as it serves. The others wait where nobody sees that they are too many.
    """

    def __init__(self) -> None:
        self.is_left = False  # the last batch was full
        self._factor = 1
        self._last = 0.0

    def factor(self) -> int:
        now = trio.current_time()
        is_slow = now - self._last > SLOW_TURN_S
        self._last = now
        self._factor = min(2 * self._factor, MAX_FACTOR) if self.is_left and is_slow else 1
        return self._factor


class AcceptBalancer:
    """Makes a worker that has more connections than the others wait for a moment before it accepts more.

    If the others accept nothing meanwhile, it waits a few times more, accepting a growing number each time, and then
    stops waiting until the connection counts of the others change.
    """

    def __init__(self, slot: WorkerSlot) -> None:
        self._slot = slot
        self._other_counts: list[int] = []
        self._yields = 0

    async def next_batch_size(self) -> int:
        """Returns how many connections to accept now."""
        slot = self._slot
        self._refresh()
        if not self._other_counts:
            return MAX_BATCH
        room = min(self._other_counts) + slot.max_lead - slot.connections
        if room > 0:
            return min(room, MAX_BATCH)
        if self._yields < MAX_YIELDS:
            await trio.sleep(YIELD_S)
            self._yields += 1
            self._refresh()
        return min(slot.max_lead << self._yields, MAX_BATCH)

    def _refresh(self) -> None:
        other_counts = self._slot.other_counts
        if other_counts != self._other_counts:
            self._other_counts, self._yields = other_counts, 0


def accept_pending(listener: socket.socket, on_connection: OnConnection, limit: int) -> int:
    """Accepts the connections that wait now, at most ``limit``. Returns their number."""
    for accepted in range(limit):
        try:
            sock, peer = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return accepted
        sock.setblocking(False)
        on_connection(sock, None if sock.family == socket.AF_UNIX else peer[:2])
    return limit
