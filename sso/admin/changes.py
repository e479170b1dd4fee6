"""/api/admin/changes: the stream of changes, as pages, by long polls, and as server-sent events."""

from collections.abc import AsyncGenerator
from typing import Annotated, Self
from weakref import WeakSet

import orjson
import structlog
import trio
from pydantic import Field

from sso.admin.answers.shape import AnswerShape
from sso.admin.answers.users import ChangeEventJson
from sso.admin.caller import AdminCaller
from sso.admin.errors import TooManyHeldRequests
from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, EventStreamRequest, ListQuery
from sso.admin.rights import AdminRight
from sso.change_stream.reader import ChangeReader, ExpiredCursor, StreamEvent, StreamPage, UnknownCursor
from sso.core.field_errors import FieldError
from sso.db.errors import DatabaseError
from sso.web.request_model import WholeNumber

MAX_WAIT_S = 60
HEARTBEAT_S = 15.0
RECHECK_S = 20.0  # how often the caller of a stream is authenticated again
READ_PAUSE_S = 0.01  # between two reads of a stream, so that quick changes are read together
STREAM_PAGE = 100
RECONNECT_MS = 1000
# How many requests of a user, or of all service clients of an application, a worker holds at a time: streams of
# server-sent events, and long polls. The number is also in the text of TooManyHeldRequests.
MAX_HELD = 10
RETRY_S = 5

UNKNOWN_CURSOR = "must be `next` of an earlier response, or the id of an event"
EXPIRED_CURSOR = "events after this one were deleted; read the current state and begin again without `after`"

log = structlog.get_logger()


class ChangesQuery(ListQuery):
    wait: Annotated[WholeNumber, Field(ge=0, le=MAX_WAIT_S)] = 0  # seconds


class HeldRequests:
    def __init__(self, max_held: int = MAX_HELD) -> None:
        self._max_held = max_held
        self._places: WeakSet[HeldPlace] = WeakSet()

    def begin(self, caller: AdminCaller) -> "HeldPlace":
        """Returns a place for a request. Raises TooManyHeldRequests if the caller has none left."""
        actor = caller.actor
        holder = f"user {actor.user_id}" if actor.user_id else f"application {actor.service_id}"
        if sum(place.holder == holder for place in self._places) >= self._max_held:
            raise TooManyHeldRequests(RETRY_S)
        place = HeldPlace(self._places, holder)
        self._places.add(place)
        return place


class HeldPlace:
    """Is held until its ``with`` block ends, or until nothing refers to it.

    The body of a response may be discarded before it begins; then no block of it runs.
    """

    def __init__(self, places: WeakSet["HeldPlace"], holder: str) -> None:
        self._places = places
        self.holder = holder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._places.discard(self)


class ChangeStream:
    def __init__(self, reader: ChangeReader) -> None:
        self._reader = reader
        self._held = HeldRequests()

    async def read(self, request: AdminRequest) -> AdminResponse:
        """Returns the events after ``after``. Without events, waits up to ``wait`` seconds for one.

        With ``Accept: text/event-stream``, the response is a stream of server-sent events.
        """
        query: ChangesQuery = request.query
        if request.event_stream is not None:
            return await self._open_stream(request, request.event_stream)
        if query.wait:
            with self._held.begin(request.caller):
                page = await self._page(request, query.after, query.limit, query.wait)
        else:
            page = await self._page(request, query.after, query.limit)
        return AdminResponse({"data": [event.content for event in page.events], "next": page.next})

    async def _open_stream(self, request: AdminRequest, stream: EventStreamRequest) -> AdminResponse:
        after = stream.last_event_id or request.query.after
        page = await self._page(request, after, STREAM_PAGE)  # an invalid cursor is an error of the request
        place = self._held.begin(request.caller)
        headers = {"X-Accel-Buffering": "no"}  # nginx then passes the events on at once
        return AdminResponse(headers=headers, event_stream=self._frames(request, stream, page, place))

    async def _frames(
        self, request: AdminRequest, stream: EventStreamRequest, page: StreamPage, place: HeldPlace
    ) -> AsyncGenerator[bytes]:
        """Yields the events until the worker stops, or the caller may no longer read them.

        One page is in memory at a time: the next one is read when the client has taken this one.
        """
        heartbeat_at, recheck_at = _in(HEARTBEAT_S), _in(RECHECK_S)
        try:
            with place, self._reader.signals() as signals:
                yield b"retry: %d\n\n" % RECONNECT_MS
                while not self._reader.draining:
                    if trio.current_time() >= recheck_at:
                        if not await stream.is_still_allowed():
                            return
                        recheck_at = _in(RECHECK_S)
                    if page.events:
                        yield b"".join(_frame(event) for event in page.events)
                        heartbeat_at = _in(HEARTBEAT_S)
                        await trio.sleep(READ_PAUSE_S)
                    elif trio.current_time() >= heartbeat_at:
                        yield b": heartbeat\n\n"
                        heartbeat_at = _in(HEARTBEAT_S)
                    else:
                        with trio.move_on_at(min(heartbeat_at, recheck_at)):
                            await signals.receive()
                    page = await self._page(request, page.next, STREAM_PAGE)
        except DatabaseError as error:  # the client connects again, and continues after the last event
            log.warning("changes.stream_failed", reason=str(error))

    async def _page(self, request: AdminRequest, after: str, limit: int, wait_s: float = 0) -> StreamPage:
        return await read_stream(self._reader, after, limit, wait_s, request.caller.application_id)


async def read_stream(
    reader: ChangeReader,
    after: str,
    limit: int,
    wait_s: float,
    application_id: int | None,
    *,
    of_facts: bool = False,
) -> StreamPage:
    """Returns the events after a cursor, waiting for one if ``wait_s`` is not 0. Raises FieldError."""
    try:
        if wait_s:
            return await reader.wait(after, limit, wait_s, application_id, of_facts=of_facts)
        return await reader.read(after, limit, application_id, of_facts=of_facts)
    except UnknownCursor:
        raise FieldError(("after",), UNKNOWN_CURSOR) from None
    except ExpiredCursor:
        raise FieldError(("after",), EXPIRED_CURSOR) from None


def _in(seconds: float) -> float:
    return trio.current_time() + seconds


def _frame(event: StreamEvent) -> bytes:
    """Returns an event in the format of server-sent events. JSON has no line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        event.cursor.encode(),
        event.type.encode(),
        orjson.dumps(event.content),
    )


def change_routes(stream: ChangeStream) -> tuple[AdminRoute, ...]:
    right, answer = AdminRight.VIEW_CHANGES, AnswerShape(ChangeEventJson)
    return (AdminRoute("GET", "/changes", right, stream.read, ChangesQuery, answer=answer, waits=True),)
