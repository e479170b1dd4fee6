"""/api/admin/applications/{application_id}/replica: what a replica of an application reads, and how it follows.

The service clients of the application read it, and callers with every right. A replica first reads the definition with
the cursor of the change stream, then all users page by page, then the changes after the cursor. A page may be newer
than the cursor, never older, so the copy is complete when the changes up to its last page were read.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Annotated, Any

import orjson
from pydantic import Field

from sso.accounts.user_store import UserStore
from sso.admin.answers.replicas import NamedAttributesJson, ReplicaDefinitionJson, ReplicaUserJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.changes import MAX_WAIT_S, HeldRequests, read_stream
from sso.admin.permission_access import path_application_id
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, AdminRoute, JsonRecord
from sso.admin.rights import AdminRight
from sso.change_stream.events import ChangeType
from sso.change_stream.reader import ChangeReader, StreamEvent, StreamPage
from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError
from sso.core.ids import is_user_id
from sso.db.clock import DatabaseClock
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.operations.replica_feed import ReplicaFeed
from sso.perm.stores.replica_rows import MAX_PAGE_USERS, ReplicaUsers
from sso.web.request_model import WholeNumber, at_most

MAX_NAMED_USERS = 100
MAX_EVENTS = 1000  # in one response, each of a user
MAX_HELD_REPLICAS = 100  # of one application, in each worker

TOO_LARGE = "must name users with less data, or come with after (empty at first) to read page by page"


class ReplicaUsersQuery(AdminModel):
    """The users after this one, all of them or those with these ids; or the one with this login."""

    after: Annotated[str, at_most(64)] | None = None
    limit: Annotated[WholeNumber, Field(ge=1, le=MAX_PAGE_USERS)] = 1000
    ids: Annotated[str, at_most(MAX_NAMED_USERS * 65)] | None = None  # separated by commas
    login: Annotated[str, at_most(320)] | None = None


class ReplicaChangesQuery(AdminModel):
    after: Annotated[str, at_most(64, at_least=1)]
    wait: Annotated[WholeNumber, Field(ge=0, le=MAX_WAIT_S)] = 0  # seconds


class ReplicaResource:
    def __init__(self, feed: ReplicaFeed, reader: ChangeReader, users: UserStore, clock: DatabaseClock) -> None:
        self._feed = feed
        self._reader = reader
        self._users = users
        self._clock = clock
        self._held = HeldRequests(MAX_HELD_REPLICAS)

    async def definition(self, request: AdminRequest) -> AdminResponse:
        """Returns the schema, the roles and the project of the application, and the cursor to follow changes from."""
        application_id = _own_application(request)
        cursor = await self._reader.end()  # first, so that no change is missed
        definition = await self._feed.definition(application_id)
        attributes = definition.attributes._asdict()
        members = {"data": orjson.Fragment(definition.json), "cursor": cursor, "attributes": attributes}
        return self._response(members, definition.version)

    async def list_users(self, request: AdminRequest) -> AdminResponse:
        """Returns rows of users: all of them page by page, or those with these ``ids`` or this ``login``."""
        application_id, query = _own_application(request), request.query
        if query.ids is not None:
            return await self._list_named(application_id, _read_ids(query.ids), query.after)
        if query.login is not None:
            version, users = await self._feed.users(application_id, await self._find(query.login))
            return self._page(version, users, has_more=False)
        version, users = await self._feed.page(application_id, query.after or "", query.limit)
        return self._page(version, users, has_more=users.is_full or len(users.user_ids) == query.limit)

    async def changes(self, request: AdminRequest) -> AdminResponse:
        """Returns the rows of users who may have changed after the cursor ``after``; ``missing`` do not exist.

        Without changes, waits up to ``wait`` seconds for one. With ``snapshot``, more users have changed than are
        listed: read all of them again.
        """
        application_id, query = _own_application(request), request.query
        with self._held.begin(request.caller):
            page = await read_stream(self._reader, query.after, MAX_EVENTS, query.wait, application_id, of_facts=True)
        page, version, users = await self._read_changed(application_id, page)
        members = {"data": _rows(users), "next": page.next}
        members["missing"] = sorted(set(_users_of(page.events)).difference(users.user_ids))
        members["snapshot"] = any(event.content.get("everyone") is True for event in page.events)
        return self._response(members, version)

    async def _list_named(self, application_id: int, ids: Sequence[str], after: str | None) -> AdminResponse:
        """Without ``after``, the caller may not know of pages, and take the users of the next one for missing ones."""
        requested = sorted({user_id for user_id in ids if after is None or user_id > after})
        version, users = await self._feed.users(application_id, requested)
        has_more = bool(users.unread(requested))
        if has_more and after is None:
            raise FieldError(("ids",), TOO_LARGE)
        return self._page(version, users, has_more=has_more)

    async def _read_changed(self, application_id: int, page: StreamPage) -> tuple[StreamPage, str, ReplicaUsers]:
        """Returns the first events, with the version of the definition and the rows of all users whom they are about.

        They are as many events as fit into a response, and at least one.
        """
        user_ids = _users_of(page.events)
        version, users = await self._feed.users(application_id, user_ids)
        unread = set(users.unread(user_ids))
        if not unread:
            return page, version, users
        count = sum(1 for _ in takewhile(lambda event: _named_in(event).isdisjoint(unread), page.events))
        if count == 0:
            count = 1
            version, users = await self._feed.users(application_id, _users_of(page.events[:1]), whole=True)
        return page.first(count), version, users

    async def _find(self, login: str) -> list[str]:
        user = await self._users.find(login)
        return [user.user_id] if user else []

    def _page(self, version: str, users: ReplicaUsers, *, has_more: bool) -> AdminResponse:
        return self._response({"data": _rows(users), "next": users.user_ids[-1] if has_more else None}, version)

    def _response(self, members: JsonRecord, version: str) -> AdminResponse:
        return AdminResponse({**members, "version": version, "now": self._clock.now()})


def _own_application(request: AdminRequest) -> int:
    """Returns the application of the path. Raises Forbidden for all but its service clients, and root."""
    application_id, caller = path_application_id(request), request.caller
    if application_id != caller.application_id and not caller.is_root:
        raise Forbidden("a service client of the application is required")
    if application_id == CENTRAL_APPLICATION_ID:
        raise Forbidden("the central application has no replicas")
    return application_id


def _read_ids(text: str) -> list[str]:
    ids = text.split(",")
    if len(ids) > MAX_NAMED_USERS or not all(map(is_user_id, ids)):
        raise FieldError(("ids",), f"must be 1 to {MAX_NAMED_USERS} user ids, separated by commas")
    return ids


def _rows(users: ReplicaUsers) -> Any:
    return orjson.Fragment(f"[{users.json}]")


def _users_of(events: Sequence[StreamEvent]) -> list[str]:
    """Returns the users whom the events are about, each once, in the order of the events."""
    return list(dict.fromkeys(user_id for event in events for user_id in _named_in(event)))


def _named_in(event: StreamEvent) -> set[str]:
    content = event.content
    users = {content["user_id"]} if "user_id" in content else set()
    if event.type in (ChangeType.USER_MERGED, ChangeType.USER_UNMERGED):
        users |= {content["from"], content["into"]}
    return users


def replica_routes(resource: ReplicaResource) -> tuple[AdminRoute, ...]:
    """A replica learns here that its application was removed, and restored."""
    right, path = AdminRight.VIEW_CHANGES, "/applications/<application_id>/replica"
    more = {"version": str, "now": float}
    definition = AnswerShape(ReplicaDefinitionJson, {**more, "attributes": NamedAttributesJson, "cursor": str})
    users = AnswerShape(ReplicaUserJson, more, is_list=True)
    changes = AnswerShape(ReplicaUserJson, {**more, "missing": list[str], "snapshot": bool}, is_list=True)
    return (
        AdminRoute(
            "GET",
            path,
            right,
            resource.definition,
            answer=definition,
            operation="get_replica_definition",
            serves_removed_applications=True,
        ),
        AdminRoute(
            "GET",
            f"{path}/users",
            right,
            resource.list_users,
            ReplicaUsersQuery,
            answer=users,
            operation="list_replica_users",
            serves_removed_applications=True,
        ),
        AdminRoute(
            "GET",
            f"{path}/changes",
            right,
            resource.changes,
            ReplicaChangesQuery,
            answer=changes,
            waits=True,
            operation="list_replica_changes",
            serves_removed_applications=True,
        ),
    )
