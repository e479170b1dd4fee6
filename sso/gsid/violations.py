"""Security violations. The client gets the id of a record; operators read the record with `sso why ID`."""

import time
from collections import OrderedDict

import structlog

from sso.core.ids import record_id
from sso.core.net import Address
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.gsid.client_proof import ProofFailure
from sso.gsid.errors import Violation
from sso.gsid.rate_limit import MAX_RECORDED_REFUSALS, AddressKeys, GameRateLimiter
from sso.gsid.violation_store import ViolationStore

MAX_SHARED_RECORDS = 10_000
MAX_GSID_LENGTH = 64  # a client may send any text as gsid
UNKNOWN_ADDRESS_KEY = b"nowhere"  # in place of the key of an address

TOO_EARLY = ProofFailure("blocked", "a poll after the delay of the last RETRY", "too many early polls")
TOO_MANY = ProofFailure("blocked", f"at most {MAX_RECORDED_REFUSALS} refused requests in a minute", "more")
UNKNOWN_ADDRESS = ProofFailure("unknown address", "an address", "none")

log = structlog.get_logger()


class Violations:
    def __init__(self, database: Database, rate_limiter: GameRateLimiter, block_s: int, *, explains: bool) -> None:
        """``explains`` tells clients the reason, which helps those who guess. Only the demo does."""
        self._store = ViolationStore(database)
        self._rate_limiter = rate_limiter
        self._block_s = block_s
        self._explains = explains
        self._shared: OrderedDict[bytes, tuple[str, float]] = OrderedDict()  # record ids and their expiry, by key

    async def refuse(self, gsid: str, failure: ProofFailure, address: Address) -> Violation:
        """Returns the error to raise. Beyond a limit per minute, the refusals of an address share one record."""
        key = AddressKeys.of(address).refusals
        if self._shared_record(key) or not await self._rate_limiter.count_refusal(key):
            return await self._share(key, gsid, TOO_MANY, address)
        return self._violation(await self._write(gsid, failure, str(address)), failure)

    async def unknown_address(self, gsid: str) -> Violation:
        """Returns the error for a client whose address is unknown, because its proxy did not send a valid one."""
        return await self._share(UNKNOWN_ADDRESS_KEY, gsid, UNKNOWN_ADDRESS, "unknown")

    async def blocked(self, gsid: str, address: Address) -> Violation:
        """Returns the error for a client that is blocked for early polls."""
        return await self._share(AddressKeys.of(address).early_polls, gsid, TOO_EARLY, address)

    async def _share(self, key: bytes, gsid: str, failure: ProofFailure, address: object) -> Violation:
        """Uses one record for many refusals, so that they cannot fill the database."""
        if shared := self._shared_record(key):
            return self._violation(shared, failure)
        record = record_id()
        self._shared[key] = (record, time.monotonic() + self._block_s)  # before the write: concurrent refusals find it
        self._shared.move_to_end(key)
        if len(self._shared) > MAX_SHARED_RECORDS:
            self._shared.popitem(last=False)
        return self._violation(await self._write(gsid, failure, str(address), record), failure)

    def _violation(self, record: str, failure: ProofFailure) -> Violation:
        if not self._explains:
            return Violation(record)
        values = (("expected", failure.expected), ("found", failure.found))
        return Violation(record, ", ".join([failure.reason, *(f"{name}: {value}" for name, value in values if value)]))

    def _shared_record(self, key: bytes) -> str:
        record, expires = self._shared.get(key, ("", 0.0))
        return record if time.monotonic() < expires else ""

    async def _write(self, gsid: str, failure: ProofFailure, address: str, record: str = "") -> str:
        record = record or record_id()
        gsid = gsid[:MAX_GSID_LENGTH].replace("\0", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL cannot store NUL
        log.warning(
            "gsid.violation_recorded",
            record=record,
            gsid=gsid,
            reason=failure.reason,
            expected=failure.expected,
            found=failure.found,
            address=address,
        )
        try:
            await self._store.record(record, gsid, failure.reason, failure.expected, failure.found, address)
        except DatabaseError as error:  # the log has it; the request is refused all the same
            log.warning("gsid.violation_write_failed", record=record, reason=str(error))
        return record
