"""The records of security violations in the database."""

from datetime import datetime

from msgspec import Struct

from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner

RETENTION_DAYS = 7

_RECORD = BatchStatement(
    f"""WITH item AS ( -- the violations
        SELECT * FROM {{items}}
    ), recorded AS ( -- their new rows
        INSERT INTO game_violations (id, gsid, reason, expected, found, address, expires)
        SELECT id, gsid, reason, expected, found, address, now() + interval '{RETENTION_DAYS} days'
        FROM item RETURNING id
    )
    SELECT item.n FROM item JOIN recorded USING (id)""",
    columns={"id": "text", "gsid": "text", "reason": "text", "expected": "text", "found": "text", "address": "text"},
)
_READ = Statement("SELECT * FROM game_violations WHERE id = :id AND expires > now()")


class ViolationRecord(Struct, frozen=True):
    id: str
    created: datetime
    gsid: str
    reason: str
    expected: str
    found: str
    address: str


async def find_violation(runner: Runner, violation_id: str) -> ViolationRecord | None:
    """Returns None if the record does not exist or has expired."""
    row = await runner.row(_READ, id=violation_id)
    return ViolationRecord(**{name: row[name] for name in ViolationRecord.__struct_fields__}) if row else None


class ViolationStore:
    def __init__(self, database: Database) -> None:
        self._record = Batch(database, _RECORD)

    async def record(self, violation_id: str, gsid: str, reason: str, expected: str, found: str, address: str) -> None:
        await self._record(id=violation_id, gsid=gsid, reason=reason, expected=expected, found=found, address=address)
