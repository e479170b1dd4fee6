"""A request to a permission endpoint: its caller, and its fields, which are read strictly."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import Struct, field

from sso.core.field_errors import FieldError, FieldPath
from sso.perm.caller import Caller
from sso.perm.changes.writer import WriteMode
from sso.perm.input import validators
from sso.perm.input.names import read_application_id
from sso.perm.operations.writes import Precondition
from sso.perm.stores.facts_reader import FactsReader


class PermissionRequest(Struct, frozen=True):
    fields: dict[str, Any]
    caller: Caller
    if_match: str | None = None
    warnings: list[str] = field(default_factory=list)  # collected while the request is handled, sent in the response
    facts: FactsReader | None = None  # with what this request has read, if it only reads
    precondition: Precondition | None = None

    @property
    def data(self) -> dict[str, Any]:
        return validators.read_object(self.fields.get("data", {}), ("data",))

    def required_data(self) -> dict[str, Any]:
        if "data" not in self.fields:
            raise FieldError(("data",), "is required")
        return self.data

    @property
    def options(self) -> dict[str, Any]:
        return validators.read_object(self.fields.get("options", {}), ("options",))

    def application_id(self) -> int:
        return read_application_id(self.fields.get("application_id"), ("application_id",))

    def text(self, name: str, max_length: int = 256) -> str:
        return validators.read_text(self.fields.get(name), (name,), max_length, min_length=1)

    def write_mode(self) -> WriteMode:
        """Returns how a write is done: ``options.dry_run``, and ``override``, which may also be an option."""
        options = self.options
        dry_run = validators.read_flag(options.get("dry_run", False), ("options", "dry_run"))
        override = validators.read_flag(options.get("override", False), ("options", "override"))
        override |= validators.read_flag(self.fields.get("override", False), ("override",))
        return WriteMode(dry_run, override, self.caller.actor)

    def warn_unknown(self, data: dict[str, Any], known: frozenset[str], path: FieldPath = ()) -> None:
        """Adds a warning for each field that the endpoint ignores."""
        self.warnings.extend(validators.unknown_field_warnings(data, known, path))

    def response(self, **members: Any) -> dict[str, Any]:
        warnings = {"warnings": self.warnings} if self.warnings else {}
        return {"status": "OK", **members, **warnings}


# A handler returns the members of the response, or the response as JSON.
Handler: TypeAlias = Callable[[PermissionRequest], Awaitable[dict[str, Any] | bytes]]


def by_action(**handlers: Handler) -> Handler:
    """Returns a handler that passes the request to the handler named by its field ``action``."""
    names = list(handlers)

    async def dispatch(request: PermissionRequest) -> dict[str, Any] | bytes:
        action = request.fields.get("action")
        if not isinstance(action, str) or action not in handlers:
            raise FieldError(("action",), f"must be {', '.join(names[:-1])} or {names[-1]}")
        return await handlers[action](request)

    return dispatch
