"""A user's permissions and own record at an application: read, save (§2.9)."""

from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

import orjson
from msgspec import Struct
from msgspec.structs import replace

from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.rate_limit import WindowLimiter
from sso.db.transaction import Transaction, run_pure
from sso.perm.authorization import Authorizer, CallerRights, missing_sections
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.records import Assignment, OwnRecord
from sso.perm.engine.render import DEFAULT_OPTIONS, Options, earliest_role_end, render
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, ROOT_ROLE, SECTIONS
from sso.perm.errors import TooManyLargeSaves
from sso.perm.input import validators
from sso.perm.input.protected_rules import shadowed_private_rules
from sso.perm.input.references import encode_assignments
from sso.perm.input.roles import read_assignments
from sso.perm.input.schema import USER_DATA_FIELDS, read_own_data
from sso.perm.operations.explain import explain_json
from sso.perm.operations.writes import OperationContext, OperationResult, PermissionWrites
from sso.perm.stores.compilation import is_large_json
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.loaded_facts import LoadedFacts, RunInThread
from sso.perm.stores.locks import ANY_PROJECT, lock_revision
from sso.perm.stores.user_data import read_assigned_roles, save_record
from sso.telemetry.counters import PERMISSION_CHECKS

MAX_LARGE_SAVES = 60  # of own records in an hour, by users who may not save those of others
_LARGE_SAVES = WindowLimiter("large own data", MAX_LARGE_SAVES, 3600)


class UserDataQuestion(NamedTuple):
    """What is asked about the permissions of a user at an application."""

    user_id: str
    application_id: int
    list_type: str = "list"
    options: Options = DEFAULT_OPTIONS
    explain: bool | str = False  # all rules, or the name of one
    at: int | None = None  # a moment of the past


class UserDataChanges(NamedTuple):
    """The parts of a user's own record that are replaced."""

    sections: dict[str, Any]
    assigned: tuple[Assignment, ...] | None  # None keeps the roles
    is_large: bool  # computing with them takes more than a few milliseconds

    @property
    def names(self) -> set[str]:
        return {*self.sections, *(() if self.assigned is None else ("roles",))}


class SavedRecord(Struct, frozen=True):
    record: dict[str, Any]
    readable: frozenset[str]  # the sections that the caller may read


class UserDataOperations:
    def __init__(
        self, database: Database, writes: PermissionWrites, authorizer: Authorizer, facts: StoredFacts
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._facts = facts

    async def read(self, caller: Caller, question: UserDataQuestion) -> dict[str, Any]:
        """Returns the members of the response."""
        members = await self.answer(caller, question, as_json=False)
        assert isinstance(members, dict)
        return members

    async def answer(
        self, caller: Caller, question: UserDataQuestion, facts: FactsReader | None = None, *, as_json: bool
    ) -> dict[str, Any] | bytes:
        """Like `read`. With ``as_json``, returns the whole response where it is kept for the next request."""
        user_id, application_id, list_type, options, explain, at = question
        is_own = bool(caller.user_id) and user_id == caller.user_id
        authorizer = self._authorizer.with_facts(facts)
        rights = await authorizer.caller_rights(caller, application_id)
        target = require_target(rights, "canRead", ())
        if not caller.user_id and list_type != "roles":
            raise Forbidden
        sections = readable_sections(caller, rights, own=is_own)
        if at is not None:
            user = await authorizer.facts.past.load(
                user_id, application_id, caller.address, at, path=("options", "at"), caller=caller.subject
            )
            if not rights.is_root and not (is_own and explain is False):
                refuse_other_project(target, user)
        else:
            user = target if is_own else await load_facts(authorizer.facts, user_id, application_id, caller)
        if not user.user_exists:
            raise NotFound("user not found")
        if (target if at is None else user).is_removed:
            raise Forbidden("removed")
        if list_type == "roles" and "roles" not in sections:
            raise missing_sections("canRead", ("roles",))
        options = _with_sections(options, sections)
        PERMISSION_CHECKS.add(list_type)
        if as_json and at is None and explain is False and not options.with_exp:
            if user.is_large:
                await _prepare_response(user, user_id, list_type, options, caller.now, authorizer.facts.run_in_thread)
            return current_response(user, user_id, list_type, options, caller.now)
        now = caller.now if at is None else at

        def members(user: LoadedFacts) -> dict[str, Any]:
            effective = user.effective(now)
            data = {"data": render(list_type, user.application, user.facts, effective, options)}
            explained = explain_json(explain, rights, user, effective, options, short=list_type == "list_short")
            return {**data, **explained, "user_id": user_id, "expired": earliest_role_end(effective, options)}

        return await user.compute(authorizer.facts.run_in_thread, now, members)

    async def parse(self, context: OperationContext, data: dict[str, Any], default_expired: int) -> UserDataChanges:
        """Returns the parts of a record that were given. ``default_expired`` is for those without an end."""
        given = {name: data[name] for name in SECTIONS if name in data}
        is_large = is_large_json(given)
        sections, warnings = await run_pure(self._database, is_large, read_own_data, given, default_expired)
        context.warnings.extend((*warnings, *validators.unknown_field_warnings(data, USER_DATA_FIELDS, ())))
        if "roles" not in data:
            return UserDataChanges(sections, None, is_large)
        assigned, warnings = read_assignments(data["roles"], default_expired)
        context.warnings.extend(warnings)
        return UserDataChanges(sections, assigned, is_large)

    async def save(
        self, context: OperationContext, user_id: str, application_id: int, changes: UserDataChanges
    ) -> OperationResult[SavedRecord]:
        """Replaces the given parts of the user's own record."""
        caller = context.caller
        is_own = user_id == caller.user_id
        rights = await self._authorizer.caller_rights(caller, application_id)
        await self._authorize_save(rights, user_id, changes.names, own=is_own)
        if is_own and not changes.names <= rights.granted.writable_sections(own=False):
            await self._count_large_save(user_id, rights.target.facts.own, changes)
        scope = Scope.record(user_id, application_id)
        work = self._facts, caller, rights, user_id, application_id, changes
        write = await self._writes.run(context, scope, _save, *work)
        return write.with_result(SavedRecord(write.result, rights.granted.readable_sections(own=is_own)))

    async def _authorize_save(self, rights: CallerRights, user_id: str, sections: set[str], *, own: bool) -> None:
        target = require_target(rights, "canWrite", sections)
        writable = rights.granted.writable_sections(own=own)
        if not writable or not sections <= writable:
            raise missing_sections("canWrite", sections - writable)
        if not own:
            central = await self._authorizer.facts.load(user_id, CENTRAL_APPLICATION_ID, None)
            if central is None or not central.user_exists:
                raise NotFound("user not found")
        if target.is_removed:
            raise Forbidden("removed")

    async def _count_large_save(self, user_id: str, stored: OwnRecord, changes: UserDataChanges) -> None:
        """Limits the work, and the history, that users can make who save as often as they want. Raises
        TooManyLargeSaves.

        It counts before the save, whatever becomes of it: a dry run and a repetition take as long.
        """
        record = {name: changes.sections.get(name, getattr(stored, name)) for name in SECTIONS}
        roles = stored.roles if changes.assigned is None else changes.assigned
        is_large = is_large_json({**record, "roles": encode_assignments(roles)})
        if is_large and (wait_s := await _LARGE_SAVES.add(self._database, user_id)):
            raise TooManyLargeSaves(wait_s)


async def load_facts(facts: FactsReader, user_id: str, application_id: int, caller: Caller) -> LoadedFacts:
    loaded = await facts.load(user_id, application_id, caller.address)
    assert loaded is not None  # applications are never deleted
    return loaded


def current_response(user: LoadedFacts, user_id: str, list_type: str, options: Options, now: int) -> bytes:
    """Returns the response of a get as JSON. It is rendered once for each version of the facts."""

    def render_json() -> bytes:
        effective = user.effective(now)
        data = render(list_type, user.application, user.facts, effective, options)
        ends = earliest_role_end(effective, options)
        return orjson.dumps({"status": "OK", "data": data, "user_id": user_id, "expired": ends})

    return user.remember(("response", list_type, options), now, render_json)


async def _prepare_response(
    user: LoadedFacts, user_id: str, list_type: str, options: Options, now: int, run_in_thread: RunInThread
) -> None:
    """Renders the response of a user with many permissions in a thread."""
    name = "response", list_type, options
    await user.compute_in_thread(
        run_in_thread, name, now, lambda facts: current_response(facts, user_id, list_type, options, now)
    )


def _with_sections(options: Options, sections: frozenset[str]) -> Options:
    return _default_options(sections) if options is DEFAULT_OPTIONS else replace(options, sections=sections)


@cache
def _default_options(sections: frozenset[str]) -> Options:
    """There are few sets of sections."""
    return Options(sections=sections)


def require_target(rights: CallerRights, right: str, sections: Collection[str]) -> LoadedFacts:
    """Returns the target application.

    If it does not exist, the error is the same as for a caller without rights there.
    """
    if rights.target_facts is None and not rights.is_root:
        raise missing_sections(right, sections)
    return rights.target


def refuse_other_project(present: LoadedFacts, past: LoadedFacts) -> None:
    """The rights of callers are those in the present project, which do not show how another project gave roles."""
    if past.project_id not in (None, present.project_id):
        raise Forbidden("the application was in another project")


def readable_sections(caller: Caller, rights: CallerRights, *, own: bool) -> frozenset[str]:
    sections = rights.granted.readable_sections(own=own)
    if not caller.user_id:
        # Without a user, a service or an access key of the application may read roles there.
        sections = frozenset(("roles",)) if caller.key or rights.granted.service else frozenset()
    if not sections:
        raise missing_sections("canRead", ())
    return sections


async def _save(
    tx: Transaction,
    facts: StoredFacts,
    caller: Caller,
    rights: CallerRights,
    user_id: str,
    application_id: int,
    changes: UserDataChanges,
) -> dict[str, Any]:
    sections, assigned, _ = changes
    # A service may save because of its project. The rights of other callers do not depend on the project.
    project_id = rights.target.project_id if rights.granted.service else ANY_PROJECT
    application = await lock_revision(tx, application_id, project_id)
    compiled = await facts.read_compiled(tx, application_id, application["revision"])
    is_own = user_id == caller.user_id
    if "public_data" in sections and "private_data" not in rights.granted.writable_sections(own=is_own):
        takes_long = changes.is_large or compiled.is_large
        await run_pure(tx, takes_long, _refuse_shadows, sections["public_data"], compiled)
    if application_id == CENTRAL_APPLICATION_ID and assigned is not None and not rights.is_root:
        await _refuse_root_change(tx, user_id, assigned)
    roles = compiled.role_records
    return (await save_record(tx, caller.actor, user_id, application, roles, sections, assigned)).record


def _refuse_shadows(public_data: dict[str, Any], application: CompiledApplication) -> None:
    hidden = shadowed_private_rules(public_data, application.schema, application.role_records.values())
    if hidden:
        raise FieldError(("public_data",), f"{hidden[0]} is a private rule")


async def _refuse_root_change(tx: Transaction, user_id: str, assigned: tuple[Assignment, ...]) -> None:
    """Only root may give and take the role root, which has every right everywhere."""
    stored = await read_assigned_roles(tx, user_id, CENTRAL_APPLICATION_ID)
    if {item for item in stored if item.name == ROOT_ROLE} != {item for item in assigned if item.name == ROOT_ROLE}:
        raise Forbidden("the role root is required")
