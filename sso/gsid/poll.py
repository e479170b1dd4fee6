"""getGsidResult: a poll is held until the user has logged in or the hold time is over (§3, §4.3).

A poll subscribes, reads, waits, then claims. A confirmation after the read wakes the wait, so none is missed, and no
database connection is held while waiting.
"""

import random
from contextlib import suppress

import structlog
import trio

from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.errors import InvalidCredentials, LoginNotAllowed
from sso.accounts.model import SignedIn
from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.core.net import Address
from sso.db.errors import DatabaseError
from sso.gsid.backpressure import Backpressure
from sso.gsid.held_polls import HeldPolls
from sso.gsid.model import (
    CLOSED,
    CONFIRMED,
    DELIVERED,
    DENIED,
    END_ERRORS,
    SESSION_EXPIRED,
    Cancelled,
    Claimed,
    Failed,
    LoginReady,
    NotClaimed,
    Poll,
    PollOutcome,
    Retry,
    SessionSnapshot,
    gsid_or_empty,
)
from sso.gsid.poll_store import PollStore
from sso.gsid.rate_limit import GameRateLimiter
from sso.gsid.session_auth import SessionAuthenticator
from sso.gsid.session_request import SessionRequest
from sso.gsid.topics import poll_topic

RELEASE_TIMEOUT_S = 120.0  # longer than a usual outage of the database
RELEASE_TIMEOUT_DRAINING_S = 3.0  # shorter than the drain of a server that stops
RECONNECT_WAIT_S = 2.0
DELIVERED_RECHECK_S = 0.3  # another worker may be releasing a delivered login; it is read again after this time
EARLY_TOLERANCE_S = 0.2  # a poll may come this much before its time, because clocks and networks vary
AUTH = "gsid"  # the claim "auth" of the user JWT
log = structlog.get_logger()


class AlreadyDelivered(Exception):
    """A repeated attempt to obtain the data, which is a violation."""


class PollHandler:
    def __init__(
        self,
        store: PollStore,
        authentication_data: AuthenticationDataIssuer,
        bus: Bus,
        held_polls: HeldPolls,
        rate_limiter: GameRateLimiter,
        authenticator: SessionAuthenticator,
        backpressure: Backpressure,
        hold_s: int,
    ) -> None:
        self._store = store
        self._authenticator = authenticator
        self._authentication_data = authentication_data
        self._bus = bus
        self._held_polls = held_polls
        self._rate_limiter = rate_limiter
        self._backpressure = backpressure
        self._hold_s = hold_s

    async def wait_for_result(self, gsid: str, early_poll_key: bytes, address: Address | None = None) -> PollOutcome:
        """Holds the poll until it has an outcome. ``early_poll_key``: the counter for early polls of this client.

        With an ``address`` the poll is not authenticated yet and the address is its only evidence. Raises Violation if
        that does not suffice, and AlreadyDelivered if the data was delivered before.
        """
        with self._bus.subscribe(poll_topic(gsid), Rescans.NEVER) as signals:
            poll = await self._start(gsid, early_poll_key, address)
            if poll.early:
                await self._rate_limiter.count_early_poll(early_poll_key)
            if poll.snapshot.error:
                return Failed(poll.snapshot.error)
            if poll.snapshot.newest_poll != poll.number:  # the same batch had a newer poll of this session
                return await self._retry(poll, poll.snapshot)
            self._held_polls.add(poll)
            try:
                outcome = await self._wait(poll, signals)
            finally:
                self._held_polls.discard(poll)
            return await self._retry(poll, outcome) if isinstance(outcome, SessionSnapshot) else outcome

    async def release_claim(self, poll: Poll) -> None:
        """Makes the login available to the next poll, because this one has not delivered it, or perhaps not.

        Retries while the database is unavailable: until then, a next poll would count as a repeated attempt.
        """
        log.info("gsid.claim_released", gsid=poll.gsid)
        began = trio.current_time()
        with trio.CancelScope(shield=True):
            while True:
                try:
                    return await self._store.release_claim(poll)
                except DatabaseError as error:
                    timeout_s = RELEASE_TIMEOUT_DRAINING_S if self._held_polls.draining else RELEASE_TIMEOUT_S
                    if trio.current_time() - began > timeout_s:
                        log.error("gsid.claim_release_failed", gsid=poll.gsid, reason=str(error))
                        return None
                with trio.move_on_after(RECONNECT_WAIT_S):
                    await self._bus.connected.wait()
                await trio.sleep(random.uniform(0.05, 0.2))  # noqa: S311 - spreads load, hides nothing

    async def _start(self, gsid: str, early_poll_key: bytes, address: Address | None) -> Poll:
        began = trio.current_time()
        poll = None
        if address is not None:  # fast path: one statement authenticates and starts the poll
            poll = await self._store.start(gsid_or_empty(gsid), str(address), early_poll_key)
            if poll is None:
                with trio.CancelScope(shield=True):  # record the violation even if the client has disconnected
                    await self._authenticator.authenticate(SessionRequest.with_address_only(gsid, address))
        if poll is None:
            poll = await self._store.start(gsid)
        self._backpressure.record_poll_duration(trio.current_time() - began)
        if poll is not None and poll.snapshot.status == DELIVERED:
            await trio.sleep(DELIVERED_RECHECK_S)
            poll = await self._store.start(gsid)
        if poll is None or poll.snapshot.status == DELIVERED:
            raise AlreadyDelivered
        return poll

    async def _wait(self, poll: Poll, signals: trio.MemoryReceiveChannel[None]) -> PollOutcome | SessionSnapshot:
        """Returns the outcome; or the latest snapshot if nothing has happened by the end of the hold time."""
        deadline = trio.current_time() + min(self._hold_s, poll.left_s)
        snapshot, maybe_claimed, timed_out = poll.snapshot, False, False
        try_claim = poll.snapshot.status == CONFIRMED
        try:
            while True:
                if try_claim:
                    try:
                        claim = await self._store.claim(poll)
                    except DatabaseError as error:  # the statement may have claimed the login all the same
                        log.warning("gsid.claim_failed", reason=str(error))
                        maybe_claimed = True
                    else:
                        maybe_claimed = False
                        outcome = await self._outcome_of(poll, claim)
                        if not isinstance(outcome, SessionSnapshot):
                            return outcome
                        snapshot = outcome
                if timed_out or self._held_polls.draining:
                    return snapshot
                with trio.move_on_at(deadline) as limit:
                    await signals.receive()
                try_claim, timed_out = True, limit.cancelled_caught
        finally:
            if maybe_claimed:  # also if the client has disconnected
                await self.release_claim(poll)

    async def _outcome_of(self, poll: Poll, claim: Claimed | NotClaimed | None) -> PollOutcome | SessionSnapshot:
        """Returns the snapshot if the poll must continue to wait."""
        match claim:
            case None:
                return Failed(SESSION_EXPIRED)
            case Claimed() as claimed:
                return await self._deliver(claimed)
            case NotClaimed(snapshot, user_invalid):
                if snapshot.newest_poll != poll.number:
                    return await self._retry(poll, snapshot)
                if snapshot.error or user_invalid:
                    return Failed(snapshot.error or END_ERRORS[CLOSED])
                return Cancelled(snapshot) if snapshot.cancels != poll.cancels else snapshot

    async def _deliver(self, claimed: Claimed) -> PollOutcome:
        try:
            data = await self._authentication_data.issue(SignedIn(claimed.user, AUTH), claimed.session.options)
        except (LoginNotAllowed, InvalidCredentials):  # the user lost access between confirmation and delivery
            await self._store.deny_claimed(claimed.poll)
            return Failed(END_ERRORS[DENIED])
        except DatabaseError as error:
            log.warning("gsid.issue_failed", reason=str(error))
            await self.release_claim(claimed.poll)
            return Retry(claimed.snapshot, max(1, self._backpressure.delay()))
        except BaseException:
            await self.release_claim(claimed.poll)
            raise
        return LoginReady(claimed.snapshot, data, claimed.poll)

    async def _retry(self, poll: Poll, snapshot: SessionSnapshot) -> Retry:
        delay = self._backpressure.delay()
        if delay and not self._held_polls.draining:  # a draining worker sends polls away before their time
            with suppress(DatabaseError):
                await self._store.set_retry_time(poll, delay - EARLY_TOLERANCE_S)
        return Retry(snapshot, delay)
