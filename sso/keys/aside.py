"""Signatures that take long, made beside the event loop.

RS256 takes half a millisecond. When many are wanted at once, as by refreshes that shared a statement, all but the first
few are made in a thread: on another core, while the loop goes on. To hand one over costs a quarter of it, so for a few
it would be no gain, and where every core has a worker of its own there is nowhere to go.
"""

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import outcome
import trio

from sso.core.jwt import Signer
from sso.core.keys import CHEAP

ON_THE_SPOT = 4  # in one round of the loop


class Aside(trio.abc.Instrument):
    def __init__(self, *, spare_core: bool) -> None:
        self._spare_core = spare_core
        self._waiting: deque[tuple[Signer, Mapping[str, Any], trio.lowlevel.Task]] = deque()
        self._is_busy = False
        self._in_this_round = 0
        self._token: trio.lowlevel.TrioToken | None = None

    def after_io_wait(self, timeout: float) -> None:
        """A new round."""
        self._in_this_round = 0

    async def sign(self, signer: Signer, claims: Mapping[str, Any]) -> str:
        if not self._spare_core or signer.algorithm in CHEAP:
            return signer.sign(claims)
        if self._token is None:
            self._token = trio.lowlevel.current_trio_token()
            trio.lowlevel.add_instrument(self)
        self._in_this_round += 1
        if self._in_this_round <= ON_THE_SPOT:
            return signer.sign(claims)
        self._waiting.append((signer, claims, trio.lowlevel.current_task()))
        if not self._has_begun():
            self._waiting.pop()
            return signer.sign(claims)
        signed: str = await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
        return signed

    def _has_begun(self) -> bool:
        """False if there is no thread to be had."""
        if not self._is_busy:
            try:
                trio.lowlevel.start_thread_soon(self._sign_all, self._have_signed_all)
            except RuntimeError:
                return False
            self._is_busy = True
        return True

    def _sign_all(self) -> None:
        """In the thread, if there is one."""
        assert self._token is not None
        while self._waiting:
            signer, claims, task = self._waiting.popleft()
            self._token.run_sync_soon(trio.lowlevel.reschedule, task, outcome.capture(signer.sign, claims))

    def _have_signed_all(self, how: outcome.Outcome[None]) -> None:
        """Still in the thread, which is then free for others."""
        assert self._token is not None
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._finish, how)

    def _finish(self, how: outcome.Outcome[None]) -> None:
        self._is_busy = False
        how.unwrap()
        if self._waiting and not self._has_begun():  # who came in the last instant
            self._sign_all()
