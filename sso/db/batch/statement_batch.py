"""Concurrent calls of one operation share a statement.

The items of a batch are the calls that wait when the previous batch is done. A lone call is not delayed; under load
one round trip and one commit serve many calls. If two items of a batch compete for something that may happen only once,
the statement decides which of them gets a row; the other gets none.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from operator import itemgetter
from typing import Any

import trio

from sso.db.batch.statement import BatchStatement, mismatch
from sso.db.database import Database
from sso.db.errors import DatabaseError, DeadlineExceeded, TransactionConflict
from sso.db.transaction import Row

MAX_BATCH_ITEMS = 256
# Normally one batch runs at a time, which makes batches large. A batch that takes this long probably waits for a lock;
# then another one runs beside it.
SLOW_BATCH_S = 0.1
MAX_CONCURRENT_BATCHES = 3


class _Item:
    __slots__ = ("arguments", "began", "error", "row", "state", "woken")

    def __init__(self, arguments: Any) -> None:
        self.arguments = arguments  # a tuple, or a lone value if there is one column
        self.woken: trio.Event | None = None  # set if the item has to wait
        self.state = "waiting"  # then "leading" or "taken", then "done"
        self.began = 0.0  # when it became a leader
        self.row: Row | None = None
        self.error: BaseException | None = None


class Batch:
    """One batched operation. The first caller becomes the leader and runs the statement for all callers that wait."""

    def __init__(
        self,
        database: Database,
        statement: BatchStatement,
        *,
        observe: Callable[[int], None] | None = None,
        max_running: int = MAX_CONCURRENT_BATCHES,
    ) -> None:
        self._database = database
        self._statement = statement
        self._pick = itemgetter(*statement.names)  # returns a tuple, or a lone value if there is one column
        self._width = len(statement.names)
        self._waiting: deque[_Item] = deque()
        self._running: list[float] = []  # when each running batch began
        self._max_running = max_running
        self._observe = observe

    def __call__(self, **values: Any) -> Coroutine[Any, Any, Row | None]:
        """Returns the row for this item, or None. The keyword arguments are the columns of the statement."""
        return self._call(values) if self._database.telemetry is None else self._traced_call(values)

    async def _traced_call(self, values: dict[str, Any]) -> Row | None:
        """Like ``_call``, with a span that includes the wait for the previous batch."""
        assert self._database.telemetry is not None
        with self._database.telemetry.statement(self._statement.name):
            return await self._call(values)

    async def _call(self, values: dict[str, Any]) -> Row | None:
        try:
            item = _Item(self._pick(values))
        except KeyError:
            raise TypeError(mismatch(self._statement.names, values)) from None
        if len(values) != self._width:
            raise TypeError(mismatch(self._statement.names, values))
        if self._has_free_slot():
            self._make_leader(item)
        else:
            self._waiting.append(item)
            try:
                await self._wait(item)
            except trio.Cancelled:
                self._cancel(item)
                raise
        if item.state == "leading":
            await self._lead(item)
        if item.error is not None:
            raise item.error
        return item.row

    async def _wait(self, item: _Item) -> None:
        """Waits until the item is done or becomes the leader. The first item in the queue watches for slow batches."""
        while item.state in ("waiting", "taken"):
            if item.woken is None or item.woken.is_set():  # woken because it is the first one now
                item.woken = trio.Event()
            if item.state == "taken" or self._waiting[0] is not item:
                await item.woken.wait()
                continue
            with trio.move_on_after(SLOW_BATCH_S):
                await item.woken.wait()
            if item.state == "waiting" and self._has_free_slot():
                self._waiting.popleft()
                self._make_leader(item)

    async def _lead(self, leader: _Item) -> None:
        """Nothing that it awaits can be cancelled: a cancelled leader must not fail the other items."""
        began = await self._database.scheduler.enter(has_waited=leader.woken is not None)
        items = self._take_items(leader)
        try:
            await self._run(items)
        finally:
            self._database.scheduler.leave(began, len(items))
            for item in items:
                _finish(item)
            self._release_slot(leader)

    def _take_items(self, leader: _Item) -> list[_Item]:
        items = [leader]
        while self._waiting and len(items) < MAX_BATCH_ITEMS:
            items.append(self._waiting.popleft())
            items[-1].state = "taken"
        self._wake_first()
        return items

    async def _run(self, items: list[_Item]) -> None:
        if self._observe:
            self._observe(len(items))
        if self._database.telemetry is not None:
            self._database.telemetry.record_batch(self._statement.name, len(items))
        if self._width == 1:
            columns = [[item.arguments for item in items]]
        else:
            columns = [list(column) for column in zip(*(item.arguments for item in items), strict=True)]
        try:
            rows = await self._fetch(columns)
        except TransactionConflict as error:
            await self._run_separately(items, error)
            return
        except DatabaseError as error:
            if isinstance(error, DeadlineExceeded):
                items = [*items, *self._take_waiting()]  # fail queued callers now: they would time out as well
            for item in items:
                item.error = type(error)(*error.args)
            return
        except Exception as error:
            await self._run_separately(items, error)
            return
        for row in rows:
            items[row["n"] - 1].row = row

    async def _run_separately(self, items: list[_Item], error: Exception) -> None:
        """Runs a batch that has failed item by item: one bad item must not fail the others."""
        if len(items) == 1:
            items[0].error = error
            return
        for item in items:
            await self._run([item])

    async def _fetch(self, columns: list[list[Any]]) -> list[Row]:
        sql, name, items = self._statement.sql, self._statement.name, len(columns[0])
        try:
            return await self._database.run_sql(sql, columns, name, items)
        except TransactionConflict:  # it was rolled back, and the other transaction has gone on
            return await self._database.run_sql(sql, columns, name, items)

    def _has_free_slot(self) -> bool:
        running = self._running
        return not running or (len(running) < self._max_running and max(running) < trio.current_time() - SLOW_BATCH_S)

    def _make_leader(self, item: _Item) -> None:
        item.state = "leading"
        item.began = trio.current_time()
        self._running.append(item.began)

    def _release_slot(self, leader: _Item) -> None:
        self._running.remove(leader.began)
        if self._waiting and self._has_free_slot():
            item = self._waiting.popleft()
            self._make_leader(item)
            _wake(item)

    def _take_waiting(self) -> list[_Item]:
        """Removes all waiting items from the queue and returns them as done."""
        waiting = list(self._waiting)
        self._waiting.clear()
        for item in waiting:
            _finish(item)
        return waiting

    def _wake_first(self) -> None:
        """Lets the first item in the queue, which may be a new one, watch for slow batches."""
        if self._waiting:
            _wake(self._waiting[0])

    def _cancel(self, item: _Item) -> None:
        """Removes the item of a cancelled caller. If it has just become the leader, another one takes its slot."""
        if item in self._waiting:
            self._waiting.remove(item)
            self._wake_first()
        if item.state == "leading":
            self._release_slot(item)


def _finish(item: _Item) -> None:
    item.state = "done"
    _wake(item)


def _wake(item: _Item) -> None:
    if item.woken is not None:
        item.woken.set()
