"""Measures the queue of mails, for the metrics. One worker of a node does it: the queue is the same for all."""

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.mail.outbox_store import measure_queue

INTERVAL_S = 5.0
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
                self.waiting, self.oldest_s = await measure_queue(self._database)
            except DatabaseError as error:
                log.warning("mail.queue_read_failed", reason=str(error))
            await trio.sleep(INTERVAL_S)
