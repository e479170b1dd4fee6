"""Makes RS256 signatures in threads when many are needed at once.

An RS256 signature takes half a millisecond. When one batch of token refreshes needs many, all but the first few are
made in threads, on the cores that no worker uses, while the event loop continues. Passing a call to a thread costs a
quarter of that time. So the first few are made on the event loop, and so are all of them if each core has a worker.
"""

from collections.abc import Mapping
from typing import Any

import trio

from sso.core.algorithms import CHEAP_ALGORITHMS
from sso.core.jwt import JWT, Signer
from sso.core.thread_pool import ThreadPool

INLINE_SIGNATURES = 4  # per iteration of the event loop


def signing_threads(workers: int, cores: int) -> int:
    """Returns how many threads a worker may use, so that all of them together use the cores without a worker."""
    return -(-max(0, cores - workers) // workers)


class SigningPool(trio.abc.Instrument):
    def __init__(self, threads: int) -> None:
        self._has_threads = threads > 0
        self._threads = ThreadPool(threads)
        self._signed_in_iteration: int | None = None  # None until the instrument is installed

    def after_io_wait(self, timeout: float) -> None:
        """Trio calls this at the start of each iteration of the event loop."""
        self._signed_in_iteration = 0

    async def sign(self, signer: Signer, claims: Mapping[str, Any], header_type: str = JWT) -> str:
        if not self._has_threads or signer.algorithm in CHEAP_ALGORITHMS:
            return signer.sign(claims, header_type)
        if self._signed_in_iteration is None:
            self._signed_in_iteration = 0
            trio.lowlevel.add_instrument(self)
        self._signed_in_iteration += 1
        if self._signed_in_iteration <= INLINE_SIGNATURES:
            return signer.sign(claims, header_type)
        return await self._threads.run(signer.sign, claims, header_type)
