"""Revisions of permissions: cursors of the stream of changes, which answers state and requests may demand.

The revision of an answer is the end of the stream at the moment when its facts were read, or before it. Events are
committed with their changes and get their positions afterwards, so facts that are read at a revision or later contain
every change up to it. A cached value cannot be older: it is used only in the version that the request itself has read,
with the statement that returns the revision or with a later one.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import trio

from sso.bus.bus import Bus
from sso.change_stream.sequencer import TOPIC
from sso.change_stream.store import LAST_POSITION
from sso.core.errors import ServerBusy
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database

MAX_WAIT_S = 5.0


class RevisionNotReached(ServerBusy):
    """The revision that the request demands is not in the stream yet."""

    message = "the revision of At-Least-Revision is not reached yet, try again later"


class Revisions:
    def __init__(self, database: Database, bus: Bus) -> None:
        self._database = database
        self._bus = bus
        self._read = Batch(database, LAST_POSITION)
        self._known = 0
        self._epoch = -1  # of the connections: after a failover, the end of the stream may be an earlier one

    def is_reached(self, revision: int) -> bool:
        """Returns whether all that is read from now on is known to be of this revision or a later one."""
        return revision == 0 or (revision <= self._known and self._epoch == self._database.epoch)

    async def read(self) -> int:
        """Returns the revision of what is read from now on."""
        epoch = self._database.epoch
        row = await self._read(number=0)
        assert row is not None  # the stream has always an end
        revision: int = row["last_position"]
        if epoch == self._database.epoch:
            self._known, self._epoch = revision, epoch
        return revision

    async def wait(self, revision: int, hold: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Returns when all that is read from now on is of this revision or a later one.

        No connection to the database is used while it waits, and the wait is inside the context that ``hold`` returns.
        Raises RevisionNotReached after 5 seconds.
        """
        if self.is_reached(revision):
            return
        with trio.move_on_after(MAX_WAIT_S), self._bus.subscribe(TOPIC) as signals:
            while await self.read() < revision:
                with hold():
                    await signals.receive()
            return
        raise RevisionNotReached
