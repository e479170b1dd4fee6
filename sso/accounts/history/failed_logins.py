"""Failed logins that are about to be written to the histories of their users.

They are written in the background. The response to a failed login therefore takes the same steps, and the same time,
whether or not the user exists.
"""

from collections import Counter

import structlog
import trio

from sso.accounts.history.events import EventKind, record_failure
from sso.db.database import Database
from sso.db.errors import DatabaseError, LockTimeout

INTERVAL_S = 1.0
DRAIN_S = 5
MAX_WAITING = 10_000  # users and addresses; further ones are not written

log = structlog.get_logger()


class FailedLogins:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: Counter[tuple[str, str]] = Counter()  # attempts by user id and address

    def add(self, user_id: str, address: str) -> None:
        if (user_id, address) in self._waiting or len(self._waiting) < MAX_WAITING:
            self._waiting[user_id, address] += 1

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await trio.sleep(INTERVAL_S)
            await self.write()

    async def write(self) -> None:
        """Writes one user and address after the other, which takes one connection at most.

        What is not written yet stays in ``_waiting``, for `write_before_exit` and for the next run.
        """
        for user_id, address in reversed(list(self._waiting)):
            attempts = self._waiting.pop((user_id, address), 0)
            if not attempts:  # written by another call
                continue
            try:
                await record_failure(self._database, user_id, EventKind.SIGN_IN_FAILED, address, attempts)
            except trio.Cancelled:  # nothing was written
                self._waiting[user_id, address] += attempts
                raise
            except DatabaseError as error:
                log.warning("failed_logins.write_failed", reason=str(error))
                self._waiting[user_id, address] += attempts
                if not isinstance(error, LockTimeout):  # a locked user does not hold up the others
                    return

    async def write_before_exit(self) -> None:
        with trio.move_on_after(DRAIN_S):
            await self.write()
