"""Concurrent calls of one operation share a statement.

A batch is whatever waits when the last one is done: a lone call is not delayed, and under load the bridge, the round
trip and the commit are paid once for many. :class:`~sso.db.batch.statement.BatchStatement` describes the statement:
each call is one item of it. Where two items of one batch want the same thing that may happen once, the statement
decides which of them wins; the other gets no row.
"""

from collections import deque
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import trio

from sso.db.batch.statement import BatchStatement, mismatch
from sso.db.database import Database
from sso.db.errors import DatabaseError, DeadlineExceeded, TransactionConflict
from sso.db.statement import Statement
from sso.db.transaction import Row

MAX_BATCH_ITEMS = 256
# One batch at a time makes for large ones. Others run beside one that takes as long as this: it waits for a lock.
LONG_S = 0.1
TURNS = 3


class _Item:
    __slots__ = ("arguments", "began", "error", "row", "state", "woken")

    def __init__(self, arguments: Any) -> None:
        self.arguments = arguments  # a tuple, or a lone value if there is one column
        self.woken: trio.Event | None = None  # if it has to wait
        self.state = "waiting"  # then "leading" or "taken", then "done"
        self.began = 0.0  # its turn
        self.row: Row | None = None
        self.error: BaseException | None = None


class Batch:
    """One operation. Who comes first leads: it runs the statement for everybody who is waiting by then."""

    def __init__(
        self, database: Database, statement: BatchStatement | Statement, *, observe: Callable[[int], None] | None = None
    ) -> None:
        self._database = database
        self._statement = statement
        self._pick = itemgetter(*statement.names)  # returns a tuple, or a lone value if there is one column
        self._width = len(statement.names)
        self._waiting: deque[_Item] = deque()
        self._running: list[float] = []  # when each began
        self._observe = observe

    async def __call__(self, *arguments: Any, **values: Any) -> Row | None:
        """Returns the row for this item, or None. The keyword arguments are the columns of the statement.

        Positional arguments are for statements that are not a BatchStatement, in the order of their parameters.
        """
        if arguments:
            item = _Item(arguments if self._width > 1 else arguments[0])
        else:
            try:
                item = _Item(self._pick(values))
            except KeyError:
                raise TypeError(mismatch(self._statement.names, values)) from None
            if len(values) != self._width:
                raise TypeError(mismatch(self._statement.names, values))
        if self._may_lead():
            self._give_turn(item)
        else:
            item.woken = trio.Event()
            self._waiting.append(item)
            try:
                await self._stand_in_line(item, item.woken)
            except trio.Cancelled:
                self._leave(item)
                raise
        if item.state == "leading":
            await self._lead(item)
        if item.error is not None:
            raise item.error
        return item.row

    async def _stand_in_line(self, item: _Item, woken: trio.Event) -> None:
        """The first in line looks at the clock for all behind it."""
        while item.state == "waiting" and self._waiting[0] is item:
            with trio.move_on_after(LONG_S):
                await woken.wait()
                return
            if item.state == "waiting" and self._may_lead():
                self._waiting.popleft()
                self._give_turn(item)
                return
        await woken.wait()

    async def _lead(self, leader: _Item) -> None:
        with trio.CancelScope(shield=True):  # the others must not suffer for a leader that was called off
            began = await self._database.scheduler.enter()
            items = self._take(leader)
            try:
                await self._run(items)
            finally:
                self._database.scheduler.leave(began)
                for item in items:
                    _finish(item)
                self._end_turn(leader)

    def _take(self, leader: _Item) -> list[_Item]:
        items = [leader]
        while self._waiting and len(items) < MAX_BATCH_ITEMS:
            items.append(self._waiting.popleft())
            items[-1].state = "taken"
        return items

    async def _run(self, items: list[_Item]) -> None:
        if self._observe:
            self._observe(len(items))
        if self._width == 1:
            columns = [[item.arguments for item in items]]
        else:
            columns = [list(column) for column in zip(*(item.arguments for item in items), strict=True)]
        try:
            rows = await self._fetch(columns)
        except DatabaseError as error:
            if isinstance(error, DeadlineExceeded):
                # Who has waited meanwhile need not wait as long once more to be told the same.
                items = [*items, *self._dismiss()]
            for item in items:
                item.error = type(error)(*error.args)
            return
        except Exception as error:
            if len(items) == 1:
                items[0].error = error
                return
            # One bad item must not fail the others.
            for item in items:
                await self._run([item])
            return
        for row in rows:
            items[row["n"] - 1].row = row

    async def _fetch(self, columns: list[list[Any]]) -> list[Row]:
        try:
            return await self._database.run_sql(self._statement.sql, columns)
        except TransactionConflict:  # nothing has happened, and whoever was in the way has gone on
            return await self._database.run_sql(self._statement.sql, columns)

    def _may_lead(self) -> bool:
        running = self._running
        return not running or (len(running) < TURNS and max(running) < trio.current_time() - LONG_S)

    def _give_turn(self, item: _Item) -> None:
        item.state = "leading"
        item.began = trio.current_time()
        self._running.append(item.began)

    def _end_turn(self, item: _Item) -> None:
        self._running.remove(item.began)
        if self._waiting and self._may_lead():
            leader = self._waiting.popleft()  # nobody else may take it, or give it another turn
            self._give_turn(leader)
            _wake(leader)

    def _dismiss(self) -> list[_Item]:
        """All who wait; who has just been given a turn waits no more."""
        waiting = list(self._waiting)
        self._waiting.clear()
        for item in waiting:
            _finish(item)
        return waiting

    def _leave(self, item: _Item) -> None:
        """A cancelled caller: if it was just made leader, somebody else must lead."""
        if item in self._waiting:
            self._waiting.remove(item)
        if item.state == "leading":
            self._end_turn(item)


def _finish(item: _Item) -> None:
    item.state = "done"
    _wake(item)


def _wake(item: _Item) -> None:
    if item.woken is not None:
        item.woken.set()
