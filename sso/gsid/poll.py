"""getGsidResult: a poll is held until the user has logged in or the hold time is over (§3, §4.3).

A poll subscribes, reads, waits, then claims. A confirmation after the read wakes the wait, so none is missed, and no
database connection is held while waiting. A poll that finds the login claimed by an earlier poll waits until the answer
of that one was written, which is a violation of this one's client, or until its lease has ended (``claim_renewal.py``).
"""

from collections.abc import Awaitable
from contextlib import suppress
from copy import copy

import structlog
import trio

from sso.accounts.errors import Banned, InvalidCredentials, LoginNotAllowed
from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.core.ids import record_id
from sso.core.net import Address
from sso.db.errors import DatabaseError
from sso.gsid.backpressure import Backpressure
from sso.gsid.claim_renewal import ClaimLeases
from sso.gsid.held_polls import HeldPolls
from sso.gsid.login_issuer import LoginIssuer
from sso.gsid.model import (
    CLOSED,
    CONFIRMED,
    DELIVERED,
    DENIED,
    END_ERRORS,
    SESSION_EXPIRED,
    Cancelled,
    Claim,
    Claimed,
    Failed,
    LoginReady,
    NotClaimed,
    Poll,
    PollOutcome,
    Retry,
    SessionSnapshot,
    ended,
    gsid_or_empty,
)
from sso.gsid.poll_store import PollStore
from sso.gsid.rate_limit import GameRateLimiter
from sso.gsid.session_auth import SessionAuthenticator
from sso.gsid.session_request import SessionRequest
from sso.gsid.topics import poll_topic
from sso.telemetry.login_funnel import LOGIN_FUNNEL

DELIVERED_RECHECK_S = 0.3  # a delivered login is read again then: a worker without leases may be releasing it
MIN_LEASE_WAIT_S = 0.05
FAILED_CLAIM_RETRY_S = 1.0  # waited like the rest of a lease
EARLY_TOLERANCE_S = 0.2  # a poll may come this much before its time, because clocks and networks vary
log = structlog.get_logger()


class AlreadyDelivered(Exception):
    """A repeated attempt to obtain the data, which is a violation."""


class PollHandler:
    def __init__(
        self,
        store: PollStore,
        leases: ClaimLeases,
        issuer: LoginIssuer,
        bus: Bus,
        held_polls: HeldPolls,
        rate_limiter: GameRateLimiter,
        authenticator: SessionAuthenticator,
        backpressure: Backpressure,
        hold_s: int,
    ) -> None:
        self._store = store
        self._leases = leases
        self._authenticator = authenticator
        self._issuer = issuer
        self._bus = bus
        self._held_polls = held_polls
        self._rate_limiter = rate_limiter
        self._backpressure = backpressure
        self._hold_s = hold_s

    def with_issuer(self, issuer: LoginIssuer) -> "PollHandler":
        """Returns a handler that issues something else."""
        handler = copy(self)
        handler._issuer = issuer
        return handler

    # These two return the coroutine of the result: one of their own would add its frame to every held poll.
    def wait_for_result(
        self, gsid: str, early_poll_key: bytes, address: Address | None = None
    ) -> Awaitable[PollOutcome]:
        """Holds the poll of a game until it has an outcome. ``early_poll_key``: the counter for its early polls.

        With an ``address`` the poll is not authenticated yet and the address is its only evidence. Raises Violation if
        that does not suffice, and AlreadyDelivered if the data was delivered before.
        """
        return self._result(gsid, self._hold_s, early_poll_key, address)

    def wait_for_device(self, gsid: str, hold_s: float) -> Awaitable[PollOutcome]:
        """Holds the request of an authenticated device for at most ``hold_s``, and at most as long as a poll.

        A session has at most MAX_POLLS_PER_SECOND; a further one is early and is not held. Raises AlreadyDelivered.
        """
        return self._result(gsid, min(hold_s, self._hold_s), None, None)

    async def _result(
        self, gsid: str, hold_s: float, early_poll_key: bytes | None, address: Address | None
    ) -> PollOutcome:
        with self._bus.subscribe(poll_topic(gsid), Rescans.NEVER) as signals:
            poll = await self._start(gsid, early_poll_key, address)
            if poll.early and early_poll_key is not None:
                await self._rate_limiter.count_early_poll(early_poll_key, gsid)
            if failed := ended(poll.snapshot):
                return failed
            if poll.early and early_poll_key is None and poll.snapshot.status != CONFIRMED:
                return Retry(poll.snapshot, 0, early=True)
            if poll.snapshot.newest_poll != poll.number:  # the same batch had a newer poll of this session
                return await self._retry(poll, poll.snapshot)
            self._held_polls.add(poll)
            try:
                outcome = await self._wait(poll, signals, trio.current_time() + min(hold_s, poll.left_s))
            finally:
                self._held_polls.discard(poll)
            return await self._retry(poll, outcome) if isinstance(outcome, SessionSnapshot) else outcome

    async def finish(self, claim: Claim, delivered: bool) -> None:
        """Ends the claim of a login that was returned: its answer was written, or could not be written."""
        await (self._leases.mark_delivered(claim) if delivered else self._give_back(claim))

    async def _start(self, gsid: str, early_poll_key: bytes | None, address: Address | None) -> Poll:
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

    async def _wait(
        self, poll: Poll, signals: trio.MemoryReceiveChannel[None], deadline: float
    ) -> PollOutcome | SessionSnapshot:
        """Returns the outcome; or the latest snapshot if nothing has happened by the deadline."""
        snapshot, lease_left_s = poll.snapshot, poll.lease_left_s
        claim, maybe_claimed, timed_out = None, False, trio.current_time() >= deadline
        try_claim = snapshot.status == CONFIRMED and (lease_left_s is None or lease_left_s <= 0)
        try:
            while True:
                if try_claim:
                    claim = claim or Claim(poll.gsid, poll.number, record_id())
                    try:
                        result = await self._leases.claim(claim)
                    except DatabaseError as error:  # the statement may have claimed the login all the same
                        log.warning("gsid.claim_failed", reason=str(error))
                        maybe_claimed, lease_left_s = True, FAILED_CLAIM_RETRY_S
                    else:
                        maybe_claimed = False
                        outcome = await self._outcome_of(poll, claim, result)
                        if not isinstance(outcome, NotClaimed):
                            return outcome
                        snapshot, lease_left_s = outcome.snapshot, outcome.lease_left_s
                if timed_out or self._held_polls.draining:
                    return snapshot
                wake_at = deadline
                if lease_left_s is not None:
                    wake_at = min(deadline, trio.current_time() + max(MIN_LEASE_WAIT_S, lease_left_s))
                with trio.move_on_at(wake_at):
                    await signals.receive()
                try_claim, timed_out = True, trio.current_time() >= deadline
        finally:
            if claim and maybe_claimed:  # also if the client has disconnected
                await self._leases.release(claim)

    async def _outcome_of(
        self, poll: Poll, claim: Claim, result: Claimed | NotClaimed | None
    ) -> PollOutcome | NotClaimed:
        """Returns NotClaimed if the poll must continue to wait."""
        match result:
            case None:
                return Failed(SESSION_EXPIRED)
            case Claimed():
                return await self._deliver(claim, result)
            case NotClaimed(snapshot, user_invalid):
                if snapshot.newest_poll != poll.number:
                    return await self._retry(poll, snapshot)
                if snapshot.status == DELIVERED:
                    raise AlreadyDelivered
                if failed := ended(snapshot):
                    return failed
                if user_invalid:
                    return Failed(END_ERRORS[CLOSED])
                return Cancelled(snapshot) if snapshot.cancels != poll.cancels else result

    async def _deliver(self, claim: Claim, claimed: Claimed) -> PollOutcome:
        try:
            data = await self._issuer.issue(claim, claimed)
            if await self._leases.is_held(claim):
                if claimed.session.client_id is None:
                    LOGIN_FUNNEL.add("delivered", claimed.session.application_ids, claimed.session.distr)
                return LoginReady(claimed.snapshot, data, claim)
        except (LoginNotAllowed, InvalidCredentials) as error:  # the user lost access since the confirmation
            ban = error.ban if isinstance(error, Banned) else None
            if await self._leases.deny(claim, ban):
                return Failed(END_ERRORS[DENIED], ban)
        except DatabaseError as error:
            log.warning("gsid.issue_failed", reason=str(error))
            await self._give_back(claim)
            return Retry(claimed.snapshot, max(1, self._backpressure.delay()))
        except BaseException:
            await self._give_back(claim)
            raise
        self._leases.forget(claim)  # a newer poll has taken the login over
        return Retry(claimed.snapshot, self._backpressure.delay())

    async def _give_back(self, claim: Claim) -> None:
        """Makes the login available to the next poll, and revokes what was issued under this claim."""
        await self._leases.release(claim)
        with trio.CancelScope(shield=True):
            try:
                await self._issuer.revoke(claim)
            except DatabaseError as error:
                log.warning("gsid.revocation_failed", gsid=claim.gsid, reason=str(error))

    async def _retry(self, poll: Poll, snapshot: SessionSnapshot) -> Retry:
        delay = self._backpressure.delay()
        if delay and not self._held_polls.draining:  # a draining worker sends polls away before their time
            with suppress(DatabaseError):
                await self._store.set_retry_time(poll, delay - EARLY_TOLERANCE_S)
        return Retry(snapshot, delay)
