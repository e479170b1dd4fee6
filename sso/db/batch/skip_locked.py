"""A batch whose items may have to wait for somebody else's change of a row: nobody waits for what is not their own."""

from typing import Any

from sso.db.batch.statement_batch import Batch
from sso.db.database import Database, Row
from sso.db.statement import Statement


class SkipLockedBatch:
    """``statement`` has ``{if_locked}`` after its ``FOR SHARE``.

    At first, rows that somebody is changing are passed over. Items that got nothing then are asked for again, and wait:
    the change may be part of a long one, and others of the first batch had nothing to do with it.
    """

    def __init__(self, database: Database, statement: str) -> None:
        self._at_once = Batch(database, Statement(statement.format(if_locked="SKIP LOCKED")))
        self._patiently = Batch(database, Statement(statement.format(if_locked="")))

    async def __call__(self, *arguments: Any) -> Row | None:
        row = await self._at_once(*arguments)
        return await self._patiently(*arguments) if row is None else row
