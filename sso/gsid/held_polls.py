"""The polls that this worker holds. A message wakes a single poll; draining wakes them all."""

import structlog
import trio

from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.db.errors import DatabaseError
from sso.db.failing_rows import isolate_failing_rows
from sso.gsid.model import Poll
from sso.gsid.poll_store import PollStore
from sso.gsid.topics import poll_topic

log = structlog.get_logger()


class HeldPolls:
    def __init__(self, store: PollStore, bus: Bus) -> None:
        self._store = store
        self._bus = bus
        self._held: set[Poll] = set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._held)

    def add(self, poll: Poll) -> None:
        self._held.add(poll)

    def discard(self, poll: Poll) -> None:
        self._held.discard(poll)

    def drain(self) -> None:
        """Wakes all polls, which then answer RETRY."""
        self.draining = True
        for poll in self._held:
            self._bus.signal(poll_topic(poll.gsid))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Periodically, and after a lost connection, finds changed sessions of all held polls in one query."""
        with self._bus.subscribe("polls", Rescans.RARELY) as scan_signals:
            task_status.started()
            async for _ in scan_signals:
                try:
                    await isolate_failing_rows(self._wake_changed, list(self._held), self._wake_after_failure)
                except DatabaseError as error:
                    log.warning("gsid.scan_failed", reason=str(error))

    async def _wake_changed(self, polls: list[Poll]) -> None:
        for gsid in await self._store.find_changed(polls):
            self._bus.signal(poll_topic(gsid))

    def _wake_after_failure(self, poll: Poll, error: Exception) -> None:
        """Wakes a poll whose session could not be scanned: it reads the session itself and fails alone."""
        log.error("gsid.session_scan_failed", gsid=poll.gsid, reason=type(error).__name__)
        self._bus.signal(poll_topic(poll.gsid))
