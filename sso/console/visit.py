"""A request to the console by an administrator, and the operations of the management API that it may use."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from sso.accounts.session_store import Session
from sso.admin.caller import AdminCaller
from sso.admin.own_records import OwnRecords
from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, JsonRecord, Progress, etag
from sso.admin.wiring import ManagementApi
from sso.audit.trail import collect_entries
from sso.console.record_names import RIGHTS, RecordNames
from sso.core.errors import ApiError, Forbidden, NotFound
from sso.web.body import ParsedBody
from sso.web.request_model import validate

_QUESTIONS = ("/conditions/test", "/conditions/matches")  # operations that change nothing, although they use POST


class ConsoleOperations:
    """Finds the rows of the table of routes of the management API."""

    def __init__(self, management: ManagementApi) -> None:
        self.authorize = management.authorize
        self.limit = management.limit
        self.protected_users = management.protected
        self.exports = management.exports
        self.read_names = management.names.read
        self._routes = {(route.method, route.path): route for route in management.routes}

    def find(self, method: str, path: str) -> AdminRoute:
        return self._routes[method, path]

    def exists(self, method: str, path: str) -> bool:
        return (method, path) in self._routes


class RecentQuestion(Struct):
    """Whether the page must still decide if its form needs recent authentication. Until then nothing is changed."""

    is_open: bool = False


class ConsoleVisit(Struct, frozen=True):
    session: Session
    caller: AdminCaller
    operations: ConsoleOperations
    is_recent: bool  # the user has authenticated recently, so that changes need no further proof
    own: OwnRecords  # what the user may do without rights, at the records of this page
    question: RecentQuestion = field(default_factory=RecentQuestion)
    entries: list[dict[str, Any]] = field(default_factory=list)  # of the audit trail, about changes of this request
    edited: list[Any] = field(default_factory=list)  # the record of an editor, once it was read

    def may(self, method: str, path: str) -> bool:
        """Returns whether the administrator may use an operation: ``may("POST", "/users")``."""
        if not self.operations.exists(method, path):
            return False
        route = self.operations.find(method, path)
        if route.right in self.caller.rights or route.other_right in self.caller.rights:
            return True
        return self.own.allow(route)

    def require(self, method: str, path: str) -> None:
        """Raises Forbidden if the administrator may not use an operation, before a form for it is shown."""
        if not self.may(method, path):
            self.caller.require(self.operations.find(method, path).right)

    async def names(self, ids: Mapping[str, Iterable[object]]) -> RecordNames:
        """Reads the names of records with one statement. ``ids``: by kind, such as ``{"user": ["1001"]}``."""
        visible = frozenset(kind for kind, right in RIGHTS.items() if right in self.caller.rights)
        wanted = {kind: [str(id) for id in ids[kind] if id] for kind in ids if kind in visible}
        with self.operations.limit(self.caller):
            return RecordNames(await self.operations.read_names(wanted), visible)

    async def protection_of(self, user_id: str) -> str:
        """Returns why the administrator may not change this user, or "" if nothing forbids it."""
        try:
            with self.operations.limit(self.caller):
                await self.operations.protected_users.require_manageable(self.caller, user_id)
        except Forbidden as error:
            return error.message
        return ""

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonRecord | None = None,
        if_match: str | None = None,
        progress: Progress = lambda _what, _done, _total: None,
        **variables: str,
    ) -> AdminResponse:
        """Calls an operation as the management API does. ``path`` is that of its route, such as ``/users/<user_id>``.

        Raises Forbidden if the administrator lacks the right, ApiError like the management API.
        """
        is_change = method != "GET" and not (query or {}).get("dry_run") and path not in _QUESTIONS
        if is_change and self.question.is_open:
            raise RuntimeError(f"{method} {path}: the page has not decided whether it needs recent authentication")
        route = self.operations.find(method, path)
        with self.operations.limit(self.caller):
            await self.operations.authorize(self.caller, route)
            if any("\0" in value for value in variables.values()):  # as in the paths and queries of the management API
                raise NotFound
            if any("\0" in value for value in (query or {}).values()):
                raise ApiError("the query has a NUL character")
            fields: dict[str, Any] = {name: value for name, value in (query or {}).items() if value != ""}
            model = validate(route.query, ParsedBody(fields, is_form=True))
            content = validate(route.body, ParsedBody(body or {})) if route.body else None
            admin_request = AdminRequest(self.caller, variables, model, content, if_match, progress=progress)
            with collect_entries() as entries:
                response = await route.respond(admin_request)
            if is_change:
                self.entries.extend(entries)
            return response

    async def data(self, method: str, path: str, **options: Any) -> Any:
        return (await self.call(method, path, **options)).members["data"]


def variables_of(operation: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Returns the variables of a page that the path of an operation has as well."""
    return {name: value for name, value in variables.items() if f"<{name}>" in operation}


def version_of(record: JsonRecord) -> str:
    """Returns the version of a record for the field ``version`` of its form (`ConsoleView.show`)."""
    return etag(record)
