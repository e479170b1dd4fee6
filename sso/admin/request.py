"""Requests to the management API and their responses."""

import base64
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import orjson
from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from sso.accounts.history.events import by_support
from sso.admin.answers.shape import UNTYPED_ANSWER, AnswerShape
from sso.admin.caller import AdminCaller
from sso.admin.errors import PreconditionFailed
from sso.admin.rights import AdminRight
from sso.core.errors import ApiError, NotFound
from sso.core.field_errors import FieldError, InvalidCursor
from sso.db.sorted_pages import Page, PageQuery
from sso.web.body import JSON, SMALL_BODY, BodyLimit, ParsedBody
from sso.web.request_model import QueryFlag, WholeNumber, at_most, validate

MAX_PAGE = 1000
EntryId = Annotated[int, Field(ge=1, le=2**63 - 1)]  # of the audit trail
JsonRecord: TypeAlias = dict[str, Any]
T = TypeVar("T")
Progress = Callable[[str, int, int], None]  # called with what is being done, the number done and the total


class AdminModel(BaseModel):
    """The base of queries. Unknown names are errors, so that a misspelled filter does not list everything."""

    # Built at its first use, as every model (``sso/core/records.py``).
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class NoQuery(AdminModel):
    pass


class WriteQuery(AdminModel):
    dry_run: QueryFlag = False  # report the effect of the change and change nothing


class DeleteQuery(WriteQuery):
    override: QueryFlag = (
        False  # delete even if an assertion of an application fails; other requests have it in the body
    )


class DeletionBody(AdminModel):
    override: bool = False  # the same as in the query


class ListQuery(AdminModel):
    limit: Annotated[WholeNumber, Field(ge=1, le=MAX_PAGE)] = 50
    after: Annotated[str, at_most(512)] = ""


class SearchQuery(ListQuery):
    search: Annotated[str, at_most(320)] = ""  # a part of a name, in any case

    def matches(self, *texts: str) -> bool:
        return any(self.search.casefold() in text.casefold() for text in texts)


class SortedQuery(SearchQuery):
    """A list that can be sorted by several columns. `sort` names them; without it, the records are sorted by key."""

    sort: str | None = None
    order: Literal["asc", "desc"] = "asc"

    @property
    def page(self) -> PageQuery:
        return PageQuery(self.limit, self.search, self.sort or "", self.order == "desc", self.after)


class EventStreamRequest(Struct, frozen=True):
    """The caller wants server-sent events (``Accept: text/event-stream``)."""

    last_event_id: str
    is_still_allowed: Callable[[], Awaitable[bool]]  # authenticates the caller again


class AdminRequest(Struct, frozen=True):
    caller: AdminCaller
    path: Mapping[str, str]
    query: Any  # the query model of the route
    body: Any = None  # the body model of the route
    if_match: str | None = None
    event_stream: EventStreamRequest | None = None
    progress: Progress = lambda _what, _done, _total: None

    def check_version(self, record: JsonRecord) -> None:
        """Raises PreconditionFailed if the caller has read another version of the record."""
        if self.if_match is None or self.if_match.strip() == "*":
            return
        if etag(record).strip('"') not in map(_opaque_tag, self.if_match.split(",")):
            raise PreconditionFailed


class AdminResponse(Struct, frozen=True):
    members: JsonRecord = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    event_stream: AsyncGenerator[bytes] | None = None  # in place of the members


Handler: TypeAlias = Callable[[AdminRequest], Awaitable[AdminResponse]]


class AdminRoute(Struct, frozen=True):
    """A row of the table of routes. The tests of rights and the OpenAPI document use the same table.

    With ``by_permissions``, callers without the right may have permissions at the application, project or group of the
    request that allow it. The handler checks them.
    """

    method: str
    path: str
    right: AdminRight
    handler: Handler
    query: type[AdminModel] = NoQuery
    body: type[BaseModel] | None = None
    by_permissions: bool = False
    other_right: AdminRight | None = None  # also opens the route, for a part of the records; the handler checks which
    body_limit: BodyLimit = SMALL_BODY
    # Fields of the record that a PATCH cannot change, so that a client can send back what it has read. Each has the
    # variable of the path that it must equal, or "" if it is ignored.
    fixed_fields: Mapping[str, str] = field(default_factory=dict)
    # For the OpenAPI document. Without an operation id such as ``list_users``, it is made from the path, and without a
    # summary, that is made from the id. Without details, they are the docstring of the handler.
    answer: AnswerShape = UNTYPED_ANSWER
    operation: str = ""
    summary: str = ""
    details: str = ""
    example: Any = None  # for the body
    # A GET that may wait, and may answer with server-sent events. A disconnect of the client cancels its handler.
    waits: bool = False
    # The answer states the revision of the permissions that it is about, and the request may demand one.
    states_revision: bool = False
    # Service clients of a removed application may use this route, and no other.
    serves_removed_applications: bool = False

    async def respond(self, request: AdminRequest) -> AdminResponse:
        """Calls the handler. What it changes of another account is shown to its user as made by support."""
        with by_support(request.caller.actor.user_id):
            return await self.handler(request)

    def read_query(self, path: Mapping[str, str], fields: dict[str, JSON]) -> Any:
        """Returns the query model. Raises ApiError, and NotFound for a path with an id that PostgreSQL refuses."""
        if any("\0" in value for value in path.values()):
            raise NotFound
        if any("\0" in name or "\0" in str(value) for name, value in fields.items()):
            raise ApiError("the query has a NUL character")
        return validate(self.query, ParsedBody(fields, is_form=True))

    def read_body(self, path: Mapping[str, str], body: ParsedBody) -> Any:
        """Returns the body model, or None for a route without one. Raises FieldError."""
        if self.body is None:
            return None
        for name, variable in self.fixed_fields.items():
            if variable and name in body.fields and str(body.fields[name]) != path[variable]:
                raise FieldError((name,), "cannot be changed")
        given = {name: value for name, value in body.fields.items() if name not in self.fixed_fields}
        return validate(self.body, replace(body, fields=given))


def with_override(query: DeleteQuery, body: ParsedBody) -> DeleteQuery:
    """A DELETE may have ``override`` in a body, where other requests have it."""
    given = validate(DeletionBody, body)
    return query.model_copy(update={"override": query.override or given.override})


def field_members(error: ApiError) -> JsonRecord:
    """Returns the members of the response to a refused request that say which field is wrong, and what it must be."""
    return {"field": list(error.path), "expected": error.expected} if isinstance(error, FieldError) else {}


def record_response(
    record: JsonRecord, status: int = 200, warnings: Sequence[str] = (), version: JsonRecord | None = None
) -> AdminResponse:
    """``version``: the fields that the ETag is made of, if a part of the record changes by itself."""
    members: JsonRecord = {"data": record, **({"warnings": list(warnings)} if warnings else {})}
    return AdminResponse(members, status, {"ETag": etag(record if version is None else version)})


def list_response(records: list[JsonRecord], next_after: str | None = None) -> AdminResponse:
    """``next`` is null on the last page."""
    return AdminResponse({"data": records, "next": next_after})


def sorted_response(page: Page[T], json: Callable[[T], JsonRecord]) -> AdminResponse:
    return list_response([json(record) for record in page.records], page.next)


def page_response(records: list[JsonRecord], limit: int, cursor: Callable[[JsonRecord], str]) -> AdminResponse:
    """The first ``limit`` records. One more of them means that there is a next page."""
    shown = records[:limit]
    return list_response(shown, cursor(shown[-1]) if len(records) > limit else None)


def slice_response(records: list[JsonRecord], query: ListQuery, id_of: Callable[[JsonRecord], str]) -> AdminResponse:
    """A page of a list of which all records are known. The order stays."""
    begin = 0
    if query.after:
        ids = [id_of(record) for record in records]
        if query.after not in ids:
            raise InvalidCursor
        begin = ids.index(query.after) + 1
    return page_response(records[begin : begin + query.limit + 1], query.limit, id_of)


def read_number_cursor(after: str, maximum: int) -> int:
    """Returns 0 for the first page."""
    if not after:
        return 0
    if not (after.isascii() and after.isdecimal() and len(after) < 20 and 0 < int(after) <= maximum):
        raise InvalidCursor
    return int(after)


def read_pair_cursor(after: str) -> tuple[str, str]:
    """Returns the parts of ``first/second``, and two empty texts for the first page."""
    if not after:
        return "", ""
    first, slash, second = after.partition("/")
    if not (first and slash and second):
        raise InvalidCursor
    return first, second


def _opaque_tag(text: str) -> str:
    """Clients may leave out the quotes, and proxies that compress a response make its tag weak."""
    return text.strip().removeprefix("W/").strip('"')


def etag(record: JsonRecord) -> str:
    """Returns a strong entity tag: a digest of the record."""
    digest = hashlib.sha256(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)).digest()
    return f'"{base64.urlsafe_b64encode(digest[:15]).decode()}"'
