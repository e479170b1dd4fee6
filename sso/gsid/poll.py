"""A poll: held until somebody has signed in, or it is time to ask again (§3, §4.3).

Subscribe, look, wait, claim: whoever confirms after the look wakes the wait, so nothing is missed in between; and no
database connection is held while waiting.
"""

import random
from contextlib import suppress

import structlog
import trio

from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.errors import InvalidCredentials, LoginNotAllowed
from sso.accounts.model import SignedIn
from sso.core.net import Address
from sso.db.errors import DatabaseError
from sso.db.notifications import Notifications
from sso.gsid.backpressure import Backpressure
from sso.gsid.held_polls import HeldPolls, topic
from sso.gsid.model import (
    CLOSED,
    CONFIRMED,
    DELIVERED,
    DENIED,
    EXPIRED,
    OVER,
    Cancelled,
    Claimed,
    Failed,
    LoginReady,
    Outcome,
    PollTurn,
    Retry,
    SessionStatus,
    possible,
)
from sso.gsid.poll_store import PollStart, PollStore
from sso.gsid.rate_limit import GameRateLimiter
from sso.gsid.session_access import SessionAccess, SessionRequest

GIVE_BACK_S = 120.0  # how long it is tried: longer than a database is away
GIVE_BACK_LEAVING_S = 3.0  # by a server that leaves: shorter than its drain
CONNECTED_S = 2.0
AGAIN_S = 0.3  # what seems delivered may be on its way back: so long after, it is looked at once more
TOLERANCE_S = 0.2  # clocks tick and packets travel: so much before its time a poll is not early
AUTH = "gsid"  # in the words of the user JWT
log = structlog.get_logger()


class AlreadyDelivered(Exception):
    """A repeated attempt to obtain the data: a violation."""


class Polls:
    def __init__(
        self,
        store: PollStore,
        authentication_data: AuthenticationDataIssuer,
        wakeups: Notifications,
        holds: HeldPolls,
        counts: GameRateLimiter,
        admission: SessionAccess,
        ease: Backpressure,
        hold_s: int,
    ) -> None:
        self._store = store
        self._admission = admission
        self._auth_data = authentication_data
        self._wakeups = wakeups
        self._holds = holds
        self._counts = counts
        self._ease = ease
        self._hold_s = hold_s

    async def wait_for_result(self, gsid: str, strike_key: bytes, address: Address | None = None) -> Outcome:
        """``strike_key``: under which an early poll is counted. AlreadyDelivered, if the data was handed out before.

        With an ``address``, the poll is not admitted yet, and has nothing to show but that: or Violation.
        """
        with self._wakeups.watch(topic(gsid), in_doubt=False) as signals:
            turn = await self._begin(gsid, strike_key, address)
            if turn.early:
                await self._counts.early_poll(strike_key)
            if turn.standing.error:
                return Failed(turn.standing.error)
            if turn.standing.poll != turn.number:  # another one of the same moment is newer
                return await self._retry(turn, turn.standing)
            self._holds.add(turn)
            try:
                outcome = await self._wait(turn, signals)
            finally:
                self._holds.discard(turn)
            return await self._retry(turn, outcome) if isinstance(outcome, SessionStatus) else outcome

    async def give_back(self, turn: PollTurn) -> None:
        """What was claimed, or may have been, has not reached the client: the next poll shall have it."""
        log.info("gsid.given_back", gsid=turn.gsid)
        began = trio.current_time()
        with trio.CancelScope(shield=True):
            while True:
                try:
                    return await self._store.give_back(turn)
                except DatabaseError as error:  # too busy, or away: until then, nobody shall be told to come again
                    most = GIVE_BACK_LEAVING_S if self._holds.draining else GIVE_BACK_S
                    if trio.current_time() - began > most:
                        log.error("gsid.not_given_back", gsid=turn.gsid, reason=str(error))
                        return None
                with trio.move_on_after(CONNECTED_S):
                    await self._wakeups.connected.wait()
                await trio.sleep(random.uniform(0.05, 0.2))  # noqa: S311 - spreads, hides nothing

    async def _begin(self, gsid: str, strike_key: bytes, address: Address | None) -> PollTurn:
        began = trio.current_time()
        turn = None
        if address is not None:  # mostly the session is theirs
            turn = await self._store.extend(possible(gsid), str(address), strike_key)
            if turn is None:
                with trio.CancelScope(shield=True):  # who asks wrongly is written down, also when they have left
                    await self._admission.admit(SessionRequest.by_address(gsid, address))
        if turn is None:
            turn = await self._store.extend(gsid)
        self._ease.took(trio.current_time() - began)
        if turn is not None and turn.standing.status == DELIVERED:
            await trio.sleep(AGAIN_S)
            turn = await self._store.extend(gsid)
        if turn is None or turn.standing.status == DELIVERED:
            raise AlreadyDelivered
        return turn

    async def _wait(self, turn: PollTurn, signals: trio.MemoryReceiveChannel[None]) -> Outcome | SessionStatus:
        """What came of it; or nothing yet, and how things stand."""
        deadline = trio.current_time() + min(self._hold_s, turn.left_s)
        standing, in_doubt, time_is_up = turn.standing, False, False
        must_look = turn.standing.status == CONFIRMED
        try:
            while True:
                if must_look:
                    try:
                        found = await self._store.claim(turn)
                    except DatabaseError as error:  # whether it was claimed is then unknown, until the next look
                        log.warning("gsid.look_failed", reason=str(error))
                        in_doubt = True
                    else:
                        in_doubt = False
                        outcome = await self._judge(turn, found)
                        if not isinstance(outcome, SessionStatus):
                            return outcome
                        standing = outcome
                if time_is_up or self._holds.draining:
                    return standing
                with trio.move_on_at(deadline) as limit:
                    await signals.receive()
                must_look, time_is_up = True, limit.cancelled_caught
        finally:
            if in_doubt:  # also when the client has left
                await self.give_back(turn)

    async def _judge(self, turn: PollTurn, found: Claimed | PollStart | None) -> Outcome | SessionStatus:
        match found:
            case None:
                return Failed(EXPIRED)
            case Claimed() as claimed:
                return await self._deliver(claimed)
            case PollStart(standing, void):
                if standing.poll != turn.number:
                    return await self._retry(turn, standing)
                if standing.error or void:
                    return Failed(standing.error or OVER[CLOSED])
                return Cancelled(standing) if standing.cancels != turn.cancels else standing

    async def _deliver(self, claimed: Claimed) -> Outcome:
        try:
            data = await self._auth_data.issue(SignedIn(claimed.user, AUTH), claimed.facts.options)
        except (LoginNotAllowed, InvalidCredentials):  # it was allowed when it was confirmed, a moment ago
            await self._store.deny(claimed.turn)
            return Failed(OVER[DENIED])
        except DatabaseError as error:
            log.warning("gsid.not_issued", reason=str(error))
            await self.give_back(claimed.turn)
            return Retry(claimed.standing, max(1, self._ease.delay()))
        except BaseException:
            await self.give_back(claimed.turn)
            raise
        return LoginReady(claimed.standing, data, claimed.turn)

    async def _retry(self, turn: PollTurn, standing: SessionStatus) -> Retry:
        delay = self._ease.delay()
        if delay and not self._holds.draining:  # who is sent away by us has nobody to wait for
            with suppress(DatabaseError):
                await self._store.defer(turn, delay - TOLERANCE_S)
        return Retry(standing, delay)
