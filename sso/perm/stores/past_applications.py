"""The schemas and roles of applications as they were at past moments, compiled.

The schema and the roles at a moment are those before the first change after it. So the change names them, and moments
between the same two changes share a compiled application. The cache has a limited number of bytes.
"""

from collections import OrderedDict

from msgspec import Struct

from sso.core.errors import ServerBusy
from sso.core.fair_queue import FairQueue, QueueFull
from sso.db.database import Database
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.reserved_names import SECTIONS
from sso.perm.stores.compilation import compile_application
from sso.perm.stores.past_facts_sql import PAST_APPLICATION

MAX_BYTES = 8 * 1024 * 1024  # of JSON; compiled applications take about ten times as much
MIN_BYTES = 1024  # that an entry counts for: an empty application takes 3 kB when it is compiled
MAX_COMPILATIONS = 2
MAX_WAITING = 200


class _PastApplication(Struct, frozen=True):
    epoch: int  # of the connections: after a failover, a lost change may have had the same id
    compiled: CompiledApplication
    counted_bytes: int


class PastApplications:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue = FairQueue(MAX_COMPILATIONS, MAX_WAITING, max_per_lane=1)
        self._entries: OrderedDict[tuple[int, int], _PastApplication] = OrderedDict()
        self._bytes = 0

    async def load(self, application_id: int, commit_id: int, at: int, caller: str) -> CompiledApplication:
        """Returns the application at the moment ``at``, after which ``commit_id`` was the first change of it.

        Each caller and each application has one compilation at a time. Raises ServerBusy if too many are waiting.
        """
        if (compiled := self._find(application_id, commit_id)) is not None:
            return compiled
        try:
            async with self._queue.slot(caller, application_id):
                return self._find(application_id, commit_id) or await self._read(application_id, commit_id, at)
        except QueueFull:
            raise ServerBusy from None

    def _find(self, application_id: int, commit_id: int) -> CompiledApplication | None:
        entry = self._entries.get((application_id, commit_id))
        if entry is None or entry.epoch != self._database.epoch:
            return None
        self._entries.move_to_end((application_id, commit_id))
        return entry.compiled

    async def _read(self, application_id: int, commit_id: int, at: int) -> CompiledApplication:
        epoch = self._database.epoch
        row = await self._database.row(PAST_APPLICATION, application_id=application_id, at=at)
        assert row is not None  # the facts of the same moment had it
        compiled = await compile_application(self._database, application_id, 0, row)
        json_bytes = sum(len(row[section]) for section in SECTIONS) + sum(map(len, row["roles"]))
        self._add((application_id, commit_id), _PastApplication(epoch, compiled, MIN_BYTES + json_bytes))
        return compiled

    def _add(self, key: tuple[int, int], entry: _PastApplication) -> None:
        """Adds the entry, and removes the oldest ones beyond the limit."""
        if (previous := self._entries.pop(key, None)) is not None:
            self._bytes -= previous.counted_bytes
        self._entries[key] = entry
        self._bytes += entry.counted_bytes
        while self._bytes > MAX_BYTES and len(self._entries) > 1:
            self._bytes -= self._entries.popitem(last=False)[1].counted_bytes
