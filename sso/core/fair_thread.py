"""A thread for work that would block the event loop, bounded and fair between clients.

The work holds the interpreter most of the time. One thread does it piece by piece, so the event loop runs in between.
Each client has at most one piece in the queue: its others wait for that one, so no client delays another client by more
than one piece of work.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar, TypeVarTuple

import trio

from sso.core.errors import Busy
from sso.core.net import Address, client_networks
from sso.core.threads import Threads

MAX_CLIENTS = 256  # that wait at the same time

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class FairThread:
    def __init__(self, max_waiting_per_client: int) -> None:
        self._max_waiting_per_client = max_waiting_per_client
        self._threads = Threads(1)
        self._turns: dict[Hashable, trio.Lock] = {}

    async def run(self, client: Address, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Calls ``work`` in the thread. Raises Busy if too many calls are waiting."""
        name = _network(client)
        turn = self._turns.get(name)
        if turn is None:
            if len(self._turns) >= MAX_CLIENTS:
                raise Busy
            turn = self._turns[name] = trio.Lock()
        elif turn.statistics().tasks_waiting >= self._max_waiting_per_client:
            raise Busy
        try:
            async with turn:
                return await self._threads.run(partial(work, *arguments))
        finally:
            if not turn.locked():  # a released lock passes to the next task that waits, if there is one
                self._turns.pop(name, None)


def _network(client: Address) -> Hashable:
    """An IPv4 address, or the /48 of an IPv6 address: one site commonly has all of it."""
    network, site = client_networks(client)
    return site or network
