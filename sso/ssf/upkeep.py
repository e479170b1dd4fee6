"""Pauses streams whose receivers do not receive, so that their events do not fill the database."""

import random

import structlog
import trio

from sso.bus.bus import Bus
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.signals.recording import PUSH_TOPIC, stream_topic
from sso.ssf.stream_store import pause_overfull_streams

INTERVAL_S = 30.0

log = structlog.get_logger()


class StreamUpkeep:
    def __init__(self, database: Database, bus: Bus) -> None:
        self._database = database
        self._bus = bus

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await trio.sleep(INTERVAL_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter between workers
            try:
                await self.pause_overfull()
            except DatabaseError as error:
                log.warning("signals.upkeep_failed", reason=str(error))

    async def pause_overfull(self) -> None:
        """Pauses the streams with too many events, and tells their receivers and the operator."""
        for row in await pause_overfull_streams(self._database):
            log.error("signals.stream_paused", stream=row["stream_id"], client=row["client_id"])
            self._bus.publish(PUSH_TOPIC if row["method"] == "push" else stream_topic(row["stream_id"]))
