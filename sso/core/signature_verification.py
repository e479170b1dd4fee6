"""Runs expensive signature verifications in a thread that is bounded and fair between clients.

A verification with the largest RSA key takes about a millisecond, and the library holds the GIL meanwhile.
"""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from sso.core.fair_thread import FairThread
from sso.core.keys import PublicKey, is_costly
from sso.core.net import Address

MAX_WAITING_PER_CLIENT = 8

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class SignatureVerificationPool:
    def __init__(self) -> None:
        self._thread = FairThread(MAX_WAITING_PER_CLIENT)

    async def run(
        self, client: Address, key: PublicKey, verify: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Calls ``verify``, in the thread if the key is costly. Raises ServerBusy if too many calls are waiting."""
        if not is_costly(key):
            return verify(*arguments)
        return await self._thread.run(client, verify, *arguments)
