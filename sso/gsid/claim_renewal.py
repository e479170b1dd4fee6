"""The claims of this worker: each is a lease that is renewed until its answer was written, or could not be written."""

import structlog
import trio

from sso.core.ban import Ban
from sso.db.errors import DatabaseError
from sso.gsid.claim_store import LEASE_S, ClaimStore
from sso.gsid.model import Claim, Claimed, NotClaimed

CHECK_S = 1.0
RENEWED_AFTER_S = 2.0
MARGIN_S = 0.5  # a lease counts as ended this long before its end, because the answer has yet to be sent
LAST_MARKS_S = 3.0  # for the last statement of a worker that stops
log = structlog.get_logger()


class ClaimLeases:
    def __init__(self, store: ClaimStore) -> None:
        self._store = store
        self._renewed: dict[Claim, float] = {}  # when each claim of this worker was made or renewed
        self._unmarked: set[Claim] = set()  # answered, while the database was unavailable

    def __len__(self) -> int:
        return len(self._renewed)

    async def claim(self, claim: Claim) -> Claimed | NotClaimed | None:
        """Claims the login, and holds the claim from then on if there was one."""
        began = trio.current_time()
        outcome = await self._store.claim(claim)
        if isinstance(outcome, Claimed):
            self._renewed[claim] = began
            if outcome.lease_ended:
                log.warning("gsid.claim_replaced", gsid=claim.gsid)
        return outcome

    async def is_held(self, claim: Claim) -> bool:
        """Returns whether no other poll has taken the claim over. Asks the database only if the lease may have ended.

        It may if this process was stopped, or was too busy to renew it.
        """
        if trio.current_time() < self._renewed[claim] + LEASE_S - MARGIN_S:
            return True
        return await self._renew(claim)

    async def mark_delivered(self, claim: Claim) -> None:
        """Records that the last byte of the answer was written; later, if the database is unavailable now."""
        self._renewed.pop(claim, None)
        try:
            await self._mark(claim)
        except DatabaseError as error:
            log.warning("gsid.delivery_record_failed", gsid=claim.gsid, reason=str(error))
            self._unmarked.add(claim)

    async def release(self, claim: Claim) -> None:
        """Makes the login available to the next poll, because this one has not delivered it, or perhaps not.

        If the database is unavailable, the lease ends by itself.
        """
        self._renewed.pop(claim, None)
        log.info("gsid.claim_released", gsid=claim.gsid)
        try:
            await self._store.release(claim)
        except DatabaseError as error:
            log.warning("gsid.claim_release_failed", gsid=claim.gsid, reason=str(error))

    async def deny(self, claim: Claim, ban: Ban | None = None) -> bool:
        """Denies the login that was claimed. Returns False if another poll has taken the claim over."""
        self._renewed.pop(claim, None)
        return await self._store.deny(claim, ban)

    def forget(self, claim: Claim) -> None:
        """Stops to renew a claim that another poll has taken over."""
        self._renewed.pop(claim, None)
        log.warning("gsid.claim_lost", gsid=claim.gsid)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Renews the leases of answers that take long, and records deliveries that could not be recorded before."""
        task_status.started()
        try:
            while True:
                await trio.sleep(CHECK_S)
                latest = trio.current_time() - RENEWED_AFTER_S
                async with trio.open_nursery() as nursery:  # they share a statement
                    for claim in [claim for claim, renewed in self._renewed.items() if renewed <= latest]:
                        nursery.start_soon(self._renew, claim)
                await self._mark_unmarked()
        finally:
            with trio.move_on_after(LAST_MARKS_S, shield=True):
                await self._mark_unmarked()

    async def _renew(self, claim: Claim) -> bool:
        began = trio.current_time()
        try:
            renewed = await self._store.renew(claim)
        except DatabaseError as error:
            log.warning("gsid.claim_renewal_failed", gsid=claim.gsid, reason=str(error))
            return False
        if renewed and claim in self._renewed:
            self._renewed[claim] = began
        return renewed

    async def _mark_unmarked(self) -> None:
        for claim in list(self._unmarked):
            try:
                await self._mark(claim)
            except DatabaseError:
                return
            self._unmarked.discard(claim)

    async def _mark(self, claim: Claim) -> None:
        if not await self._store.mark_delivered(claim):
            log.warning("gsid.claim_lost", gsid=claim.gsid)
