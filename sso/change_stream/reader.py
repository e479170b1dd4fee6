"""Reads the stream of changes: a page at once, or as soon as there is one."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio
from msgspec import Struct

from sso.bus.bus import Bus
from sso.change_stream.events import ChangeType
from sso.change_stream.sequencer import TOPIC
from sso.change_stream.store import read_events
from sso.db.database import Database
from sso.db.transaction import Row

_CURSOR = re.compile(r"[1-9][0-9]{15}", re.ASCII)  # microseconds from the years 2001 to 2286
NO_EVENTS = 2**62  # a position after all events


class UnknownCursor(Exception):
    """The cursor is not one of this stream."""


class ExpiredCursor(Exception):
    """Events after the cursor were deleted because of their age."""


class StreamEvent(Struct, frozen=True):
    cursor: str
    type: str
    content: dict[str, Any]

    @classmethod
    def from_row(cls, row: Row) -> "StreamEvent":
        cursor = str(row["position"])
        named = {"user_id": row["user_id"], "application_id": row["application_id"]}
        content = {
            "id": cursor,
            **({} if row["type"] == ChangeType.PERMISSIONS_CHANGED else {"type": row["type"]}),
            **{name: value for name, value in named.items() if value is not None},
            **row["data"],
            "time": row["at"].isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        return cls(cursor, row["type"], content)


class StreamPage(Struct, frozen=True):
    events: list[StreamEvent]
    next: str  # the cursor after these events

    def first(self, count: int) -> "StreamPage":
        """Returns a page that ends after these events, which are at least one."""
        return self if count == len(self.events) else StreamPage(self.events[:count], self.events[count - 1].cursor)


class ChangeReader:
    def __init__(self, database: Database, bus: Bus) -> None:
        self._database = database
        self._bus = bus
        self.waiting = 0  # callers that wait for events
        self.draining = False

    async def read(
        self, after: str, limit: int, application_id: int | None = None, *, of_facts: bool = False
    ) -> StreamPage:
        """Returns the events after a cursor, of one application or of all. An empty cursor is the oldest kept event.

        A page has at most ``limit`` events, and fewer if they are long; only a page without events ends the stream.
        ``of_facts`` adds the events that only replicas of the application need. Raises UnknownCursor or ExpiredCursor.
        """
        position = parse_cursor(after) if after else 0
        rows = await read_events(self._database, position, limit, application_id, of_facts=of_facts)
        last_position, trimmed_to = rows[0]["last_position"], rows[0]["trimmed_to"]
        if after and position > last_position:
            raise UnknownCursor
        if after and position < trimmed_to:
            raise ExpiredCursor
        events = [StreamEvent.from_row(row) for row in rows if row["position"] is not None]
        is_last = not events or len(events) == rows[0]["found"] < limit
        return StreamPage(events, str(last_position) if is_last else events[-1].cursor)

    async def end(self) -> str:
        """Returns the cursor at the end of the stream. Every event that has no position yet gets a later one."""
        return str((await read_events(self._database, NO_EVENTS, 1, None))[0]["last_position"])

    async def wait(
        self, after: str, limit: int, seconds: float, application_id: int | None = None, *, of_facts: bool = False
    ) -> StreamPage:
        """Returns the events after a cursor as soon as there are some; an empty page after ``seconds``.

        It also returns when the worker stops. No connection to the database is used while it waits.
        """
        deadline = trio.current_time() + seconds
        with self.signals() as signals:  # first, so that no event is missed between the read and the wait
            page = await self.read(after, limit, application_id, of_facts=of_facts)
            while not page.events and not self.draining and trio.current_time() < deadline:
                with trio.move_on_at(deadline):
                    await signals.receive()
                page = await self.read(page.next, limit, application_id, of_facts=of_facts)
        return page

    @contextmanager
    def signals(self) -> Iterator[trio.MemoryReceiveChannel[None]]:
        """Yields a channel that is signalled when there may be new events, and when the worker stops."""
        self.waiting += 1
        try:
            with self._bus.subscribe(TOPIC) as signals:
                yield signals
        finally:
            self.waiting -= 1

    def drain(self) -> None:
        """Ends all waiting, because the worker stops."""
        self.draining = True
        self._bus.signal(TOPIC)


def parse_cursor(text: str) -> int:
    """Raises UnknownCursor."""
    if not _CURSOR.fullmatch(text):
        raise UnknownCursor
    return int(text)
