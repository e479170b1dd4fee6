"""One thread for work that would block the event loop, bounded and fair between clients.

The work holds the interpreter most of the time. One thread does it piece by piece, so the event loop runs in between.
Each client has at most one piece in the thread's queue: its others wait for that one, so no client delays another
client by more than one piece of work.

A :class:`~sso.core.fair_queue.FairQueue` in front of the thread would be slower: it admits the next caller on the event
loop, so the thread would be idle for a round of the loop after each piece. Here the thread goes from one client's piece
to the next client's without the event loop.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar, TypeVarTuple

import trio

from sso.core.errors import ServerBusy
from sso.core.net import Address, client_networks
from sso.core.thread_pool import ThreadPool

MAX_CLIENTS = 256  # that wait at the same time

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class FairThread:
    def __init__(self, max_waiting_per_client: int) -> None:
        self._max_waiting_per_client = max_waiting_per_client
        self._threads = ThreadPool(1)
        self._locks: dict[Hashable, trio.Lock] = {}

    async def run(self, client: Address, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Returns ``function(*arguments)``, called in the thread. Raises ServerBusy if too many calls are waiting."""
        network = _network(client)
        lock = self._locks.get(network)
        if lock is None:
            if len(self._locks) >= MAX_CLIENTS:
                raise ServerBusy
            lock = self._locks[network] = trio.Lock()
        elif lock.statistics().tasks_waiting >= self._max_waiting_per_client:
            raise ServerBusy
        try:
            async with lock:
                return await self._threads.run(partial(function, *arguments))
        finally:
            if not lock.locked():  # a released lock passes to the next task that waits, if there is one
                self._locks.pop(network, None)


def _network(client: Address) -> Hashable:
    """Returns the network that counts as one client here: an IPv4 address, or an IPv6 /48 (commonly one site)."""
    network, site = client_networks(client)
    return site or network
