"""Gives committed events their positions in the stream.

A cursor must never skip an event. Ids that are assigned within the transactions of the changes cannot ensure that: a
transaction that began first may commit last, and its events would appear behind a cursor that is already past them.
Transactions that wait for each other before they commit would ensure it, but a command that runs for minutes would
hold up all others, and each change would wait for the disk of the one before.

Events are therefore committed without a position, and a second, short transaction numbers those that it sees. It locks
the row of the stream first, so one numbers at a time, and its events appear together with the new end of the stream.
A reader that has read up to a position has seen every event that will ever have a smaller one. Changes wait for
nothing, and those that are committed meanwhile share the next transaction.

Events are in the order of the commits. Changes that commit within the same few milliseconds keep the order in which
they were recorded, so two changes of one user, of which the second waits for the first, stay in order.

A position is the time in microseconds, or the previous position plus one if that is later. A database that was restored
from a backup therefore does not use the positions of events that were lost again.
"""

import structlog
import trio

from sso.bus.bus import Bus
from sso.change_stream.events import PENDING_TOPIC
from sso.change_stream.store import MAX_EVENTS, has_pending_events, number_events
from sso.db.database import Database
from sso.db.errors import DatabaseError

TOPIC = "changes"  # there are new events in the stream
MERGE_S = 0.005  # changes that follow each other quickly share a transaction


log = structlog.get_logger()


class ChangeSequencer:
    def __init__(self, database: Database, bus: Bus) -> None:
        self._database = database
        self._bus = bus

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Numbers events when this worker has committed some, and regularly what processes that have ended left."""
        self._database.publish_topic = self._publish
        with self._bus.subscribe(PENDING_TOPIC) as signals:
            task_status.started()
            async for _ in signals:
                try:
                    await self.number_pending()
                except DatabaseError as error:
                    log.warning("changes.numbering_failed", reason=str(error))

    def _publish(self, topic: str) -> None:
        """Publishes a topic of a transaction that was committed, to all workers.

        Every worker numbers its own events; a message to all of them would make them wait for each other.
        """
        if topic == PENDING_TOPIC:
            self._bus.publish(topic, self._bus.worker)
        else:
            self._bus.publish(topic)

    async def number_pending(self) -> None:
        """Numbers all events that are committed, and wakes those who wait for events."""
        while await has_pending_events(self._database):
            count = await self._database.transaction(number_events)
            self._bus.publish(TOPIC)
            await trio.sleep(MERGE_S)
            if count < MAX_EVENTS:  # there is another signal for events that were committed meanwhile
                return
