"""Signatures that take long, made beside the event loop.

RS256 takes half a millisecond. When many are wanted at once, as by refreshes that shared a statement, all but the first
few are made in a thread: on another core, while the loop goes on. To hand one over costs a quarter of it, so for a few
it would be no gain, and where every core has a worker of its own there is nowhere to go.
"""

from collections.abc import Mapping
from typing import Any

import trio

from sso.core.jwt import Signer
from sso.core.keys import CHEAP
from sso.core.thread_pool import ThreadPool

INLINE_SIGNATURES = 4  # in one round of the loop


class SigningPool(trio.abc.Instrument):
    def __init__(self, *, spare_core: bool) -> None:
        self._spare_core = spare_core
        self._threads = ThreadPool(1)
        self._in_this_round: int | None = None  # not counted yet

    def after_io_wait(self, timeout: float) -> None:
        """A new round."""
        self._in_this_round = 0

    async def sign(self, signer: Signer, claims: Mapping[str, Any]) -> str:
        if not self._spare_core or signer.algorithm in CHEAP:
            return signer.sign(claims)
        if self._in_this_round is None:
            self._in_this_round = 0
            trio.lowlevel.add_instrument(self)
        self._in_this_round += 1
        if self._in_this_round <= INLINE_SIGNATURES:
            return signer.sign(claims)
        return await self._threads.run(signer.sign, claims)
