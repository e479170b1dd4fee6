"""The polls that this worker holds: woken one by one when something happens, all at once when the server leaves."""

import structlog
import trio

from sso.db.bad_rows import isolate
from sso.db.errors import DatabaseError
from sso.db.notifications import Notifications
from sso.gsid.model import PollTurn
from sso.gsid.poll_store import PollStore

log = structlog.get_logger()


class HeldPolls:
    def __init__(self, store: PollStore, wakeups: Notifications) -> None:
        self._store = store
        self._wakeups = wakeups
        self._held: set[PollTurn] = set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._held)

    def add(self, turn: PollTurn) -> None:
        self._held.add(turn)

    def discard(self, turn: PollTurn) -> None:
        self._held.discard(turn)

    def drain(self) -> None:
        self.draining = True
        for turn in self._held:
            self._wakeups.wake(topic(turn.gsid))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """When a wake-up may have been lost, and now and then: one look for all of them."""
        with self._wakeups.watch("polls") as doubts:
            task_status.started()
            async for _ in doubts:
                try:
                    await isolate(self._wake_changed, list(self._held), self._scan_failed)
                except DatabaseError as error:
                    log.warning("gsid.scan_not_done", reason=str(error))

    async def _wake_changed(self, held: list[PollTurn]) -> None:
        for gsid in await self._store.changed(held):
            self._wakeups.wake(topic(gsid))

    def _scan_failed(self, turn: PollTurn, error: Exception) -> None:
        """The poll looks at its session itself, and fails alone."""
        log.error("gsid.scan_failed", gsid=turn.gsid, reason=type(error).__name__)
        self._wakeups.wake(topic(turn.gsid))


def topic(gsid: str) -> str:
    return f"poll:{gsid}"
