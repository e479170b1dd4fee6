"""Measures the queue of mails, for the metrics. One worker of a node does it: the queue is the same for all."""

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement

INTERVAL_S = 5.0
# A message without a recipient is not sent.
_MEASURE = Statement(
    """SELECT count(*) AS waiting, coalesce(CAST(extract(epoch FROM now() - min(created)) AS int), 0) AS oldest_s
    FROM outbox WHERE recipient <> ''"""
)
log = structlog.get_logger()


class MailQueueMonitor:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.waiting = 0
        self.oldest_s = 0  # age of the oldest mail; 0 without one

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            try:
                row = await self._database.row(_MEASURE)
                assert row is not None
                self.waiting, self.oldest_s = row["waiting"], row["oldest_s"]
            except DatabaseError as error:
                log.warning("mail.queue_read_failed", reason=str(error))
            await trio.sleep(INTERVAL_S)
