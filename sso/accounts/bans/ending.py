"""Ends bans whose time is over. The rule does not wait for it; it tidies up, and records the event, once."""

import random

import structlog
import trio

from sso.accounts.bans.operations import BanOperations
from sso.accounts.bans.store import find_ended
from sso.audit.trail import AuditActor
from sso.db.database import Database
from sso.db.errors import DatabaseError

INTERVAL_S = 10.0
BATCH = 100
log = structlog.get_logger()


class BanExpiry:
    def __init__(self, database: Database, operations: BanOperations) -> None:
        self._database = database
        self._operations = operations

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await trio.sleep(INTERVAL_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter between workers
            try:
                await self.end_due()
            except DatabaseError as error:
                log.warning("ban.expiry_failed", reason=str(error))

    async def end_due(self) -> int:
        """Returns how many bans this worker has ended. Of several workers, one ends each."""
        ended = 0
        for user_id, ban_id in await find_ended(self._database, BATCH):
            if await self._database.transaction(self._operations.unban, AuditActor(), user_id, ban_id):
                ended += 1
        return ended
