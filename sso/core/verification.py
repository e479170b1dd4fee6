"""A bounded thread for costly signature verifications, fair between clients.

A verification with the largest RSA key takes about a millisecond, and the library holds the interpreter meanwhile. One
thread makes them one after the other, so the event loop runs in between. Each client has at most one of them in the
queue: its others wait for that one, so no client delays another client by more than one verification.
"""

from collections.abc import Callable, Hashable
from functools import partial
from ipaddress import IPv4Address, IPv6Network
from typing import TypeVar, TypeVarTuple

import trio

from sso.core.keys import PublicKey, is_costly
from sso.core.net import Address
from sso.core.refused import Busy
from sso.core.threads import Threads

MAX_WAITING_PER_CLIENT = 8
MAX_CLIENTS = 256  # that wait at the same time
IPV6_PREFIX = 64  # one client commonly has a whole network of this size

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class VerificationPool:
    def __init__(self) -> None:
        self._threads = Threads(1)
        self._turns: dict[Hashable, trio.Lock] = {}

    async def run(
        self, client: Address, key: PublicKey, verify: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Calls ``verify``, in the thread if the key is costly. Raises Busy if too many calls are waiting."""
        if not is_costly(key):
            return verify(*arguments)
        name = _network(client)
        turn = self._turns.get(name)
        if turn is None:
            if len(self._turns) >= MAX_CLIENTS:
                raise Busy
            turn = self._turns[name] = trio.Lock()
        elif turn.statistics().tasks_waiting >= MAX_WAITING_PER_CLIENT:
            raise Busy
        try:
            async with turn:
                return await self._threads.run(partial(verify, *arguments))
        finally:
            if not turn.locked():  # a released lock passes to the next task that waits, if there is one
                self._turns.pop(name, None)


def _network(client: Address) -> Hashable:
    return client if isinstance(client, IPv4Address) else IPv6Network((client, IPV6_PREFIX), strict=False)
