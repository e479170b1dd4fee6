"""A batch that does not wait for rows that another transaction has locked, unless an item needs such a row."""

from typing import Any

from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.transaction import Row


class SkipLockedBatch:
    """The SQL of ``statement`` has ``{if_locked}`` after its locks, such as ``FOR SHARE``.

    The first attempt skips locked rows. Only items that got no row run again, in a batch that waits for the locks:
    the transaction that holds one may be long, and the other items of the first batch do not depend on it. Of the
    batches that wait, one runs at a time, so that they do not take the connections of others.
    """

    def __init__(self, database: Database, statement: BatchStatement) -> None:
        self._skipping = Batch(database, statement.substitute(if_locked="SKIP LOCKED"))
        self._waiting = Batch(database, statement.substitute(if_locked=""), max_running=1)

    async def __call__(self, **values: Any) -> Row | None:
        row = await self._skipping(**values)
        return await self._waiting(**values) if row is None else row
