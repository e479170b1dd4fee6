"""POST /api/permissions/meta/data: a user's permissions and own record at an application (§2.9, §4.5)."""

from typing import Any

from msgspec.structs import replace

from sso.core.errors import NotFound
from sso.core.field_errors import FieldError
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.transaction import run_pure
from sso.perm.engine.decode import decode_own_record
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.render import DEFAULT_OPTIONS, Options, as_tree, earliest_role_end
from sso.perm.engine.reserved_names import LIST_TYPES
from sso.perm.input import validators
from sso.perm.input.options import read_user_data_options
from sso.perm.input.schema import USER_DATA_FIELDS
from sso.perm.operations.user_data import SavedRecord, UserDataOperations, UserDataQuestion, load_facts
from sso.perm.request import PermissionRequest
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.loaded_facts import LoadedFacts


class UserDataEndpoint:
    def __init__(self, database: Database, operations: UserDataOperations, facts: FactsReader) -> None:
        self._database = database
        self._operations = operations
        self._facts = facts

    async def get(self, request: PermissionRequest) -> dict[str, Any] | bytes:
        data = request.required_data()
        request.warn_unknown(data, USER_DATA_FIELDS)
        list_type = data.get("type", "list")
        if list_type not in LIST_TYPES:
            raise FieldError(("data", "type"), f"must be {', '.join(LIST_TYPES[:-1])} or {LIST_TYPES[-1]}")
        options, explain, at = _read_options(request)
        application_id = request.application_id()
        user_id = _read_user_id(data.get("user_id", request.caller.user_id or None))
        question = UserDataQuestion(user_id, application_id, list_type, options, explain, at)
        answer = await self._operations.answer(request.caller, question, request.facts, as_json=not request.warnings)
        return answer if isinstance(answer, bytes) else request.response(**answer)

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        application_id = request.application_id()
        user_id = _read_user_id(data.get("user_id"))
        default_expired = validators.read_number(request.fields.get("expired", 0), ("expired",))
        changes = await self._operations.parse(request, data, default_expired)
        write = await self._operations.save(request, user_id, application_id, changes)
        if write.is_dry_run:
            return write.response()
        user = await load_facts(self._facts, user_id, application_id, request.caller)
        takes_long = changes.is_large or user.is_large
        tree, ends = await run_pure(self._database, takes_long, _render_saved, write.result, user, request.caller.now)
        return request.response(data=tree, user_id=user_id, expired=ends)


def _render_saved(saved: SavedRecord, user: LoadedFacts, now: int) -> tuple[dict[str, Any], int]:
    """Returns the tree of the record, and when the first of the user's roles ends."""
    own = decode_own_record(saved.record)
    effective = compute_permissions(user.application, replace(user.facts, own=own), now)
    tree = as_tree(user.application.schema, own, saved.readable)
    return tree, earliest_role_end(effective, Options(sections=saved.readable))


def _read_options(request: PermissionRequest) -> tuple[Options, bool | str, int | None]:
    """Returns the options for rendering, ``explain`` (a flag, or the name of a rule), and ``at``."""
    if "options" not in request.fields:
        return DEFAULT_OPTIONS, False, None
    options, warnings = read_user_data_options(request.fields["options"])
    request.warnings.extend(warnings)
    explain, at = options.pop("explain", False), options.pop("at", None)
    return Options(**options), explain, at


def _read_user_id(value: object) -> str:
    if value is None:
        raise FieldError(("data", "user_id"), "is required")
    if not isinstance(value, str):
        raise FieldError(("data", "user_id"), "must be a string")
    if not is_user_id(value):
        raise NotFound("user not found")
    return value
