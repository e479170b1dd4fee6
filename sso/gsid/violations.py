"""Refusals that tell a client nothing but the id of a log record, and an operator everything (`sso why ID`)."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

import structlog

from sso.core.ids import record_id
from sso.core.net import Address
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.gsid.client_proof import ProofFailure
from sso.gsid.errors import Violation
from sso.gsid.rate_limit import REFUSALS, AddressKeys, GameRateLimiter

KEPT_DAYS = 7
MAX_SHARED = 10_000
NOWHERE = b"nowhere"  # in place of the key of an address
MAX_GSID = 64  # of what was sent in its place

_RECORD = Statement(
    f"""WITH item AS (
        SELECT * FROM unnest(CAST(:ids AS text[]), CAST(:gsids AS text[]), CAST(:reasons AS text[]),
            CAST(:expected AS text[]), CAST(:found AS text[]), CAST(:addresses AS text[]))
            WITH ORDINALITY AS item (id, gsid, reason, expected, found, address, n)
    ), done AS (
        INSERT INTO game_violations (id, gsid, reason, expected, found, address, expires)
        SELECT id, gsid, reason, expected, found, address, now() + interval '{KEPT_DAYS} days' FROM item RETURNING id
    )
    SELECT item.n FROM item JOIN done USING (id)"""  # noqa: S608 - the parts are ours
)
TOO_EARLY = ProofFailure("blocked", "a poll after the delay that RETRY named", "too many that were early")
TOO_MANY = ProofFailure("blocked", f"at most {REFUSALS} refused requests in a minute", "more")
_READ = Statement("SELECT * FROM game_violations WHERE id = :id AND expires > now()")
log = structlog.get_logger()


@dataclass(frozen=True)
class ViolationRecord:
    id: str
    created: datetime
    gsid: str
    reason: str
    expected: str
    found: str
    address: str


class Violations:
    def __init__(self, database: Database, counts: GameRateLimiter, block_s: int) -> None:
        self._database = database
        self._record = Batch(database, _RECORD)
        self._counts = counts
        self._block_s = block_s
        self._shared: OrderedDict[bytes, tuple[str, float]] = OrderedDict()  # records, and until when

    async def refuse(self, gsid: str, wrong: ProofFailure, address: Address) -> Violation:
        """What to raise. It is counted against the address; beyond so many in a minute they share a record."""
        key = AddressKeys.of(address).refused
        if self._shared_record(key) or not await self._counts.refused(key):
            return await self._share(key, gsid, TOO_MANY, address)
        return Violation(await self._write(gsid, wrong, str(address)))

    async def nowhere(self, gsid: str) -> Violation:
        """For a client whose address cannot be told: what its proxy says of it is no address."""
        return await self._share(NOWHERE, gsid, ProofFailure("address unknown", "an address", "none"), "unknown")

    async def blocked(self, gsid: str, address: Address) -> Violation:
        """For a client that may not ask at the moment, because its polls were early."""
        return await self._share(AddressKeys.of(address).early, gsid, TOO_EARLY, address)

    async def find(self, violation_id: str) -> ViolationRecord | None:
        row = await self._database.row(_READ, id=violation_id)
        return ViolationRecord(**{name: row[name] for name in ViolationRecord.__dataclass_fields__}) if row else None

    async def _share(self, key: bytes, gsid: str, wrong: ProofFailure, address: object) -> Violation:
        """One record for many refusals: they must not fill the database."""
        if record := self._shared_record(key):
            return Violation(record)
        record = record_id()
        self._shared[key] = (record, time.monotonic() + self._block_s)  # before it is written: many come at once
        self._shared.move_to_end(key)
        if len(self._shared) > MAX_SHARED:
            self._shared.popitem(last=False)
        return Violation(await self._write(gsid, wrong, str(address), record))

    def _shared_record(self, key: bytes) -> str:
        record, until = self._shared.get(key, ("", 0.0))
        return record if time.monotonic() < until else ""

    async def _write(self, gsid: str, wrong: ProofFailure, address: str, record: str = "") -> str:
        record = record or record_id()
        gsid = gsid[:MAX_GSID].replace("\0", "\N{REPLACEMENT CHARACTER}")  # the one that no text there can hold
        log.warning(
            "gsid.violation",
            record=record,
            gsid=gsid,
            reason=wrong.reason,
            expected=wrong.expected,
            found=wrong.found,
            address=address,
        )
        try:
            await self._record(record, gsid, wrong.reason, wrong.expected, wrong.found, address)
        except DatabaseError as error:  # it is in the log; a refusal is a refusal
            log.warning("gsid.violation_not_kept", record=record, reason=str(error))
        return record
