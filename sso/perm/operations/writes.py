"""Runs the writes of the operations, and renders what a dry run would change.

A dry run shows the permissions of other users only as far as the caller may read them: entries of an application in the
sections that its ``secret_data.meta`` lets the caller read, and entries of a project if the caller may read its
membership. Users whose entries are all hidden are not counted. Only root learns which users violate an assertion.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from sso.core.errors import Forbidden
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.caller import Caller
from sso.perm.changes.assertion_check import AssertionFailed
from sso.perm.changes.impact import Impact, PermissionChange
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import PermissionWriter, WriteMode, overridable_by
from sso.perm.engine.management_rights import MANAGE_APPLICATIONS
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, PROJECT_ACCESS
from sso.perm.engine.rules import LISTED_SECTIONS, section_of

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

HIDDEN_USERS = "users whose permissions you may not read are neither shown nor counted"
_PROJECT_PREFIX = f"private_data.{PROJECT_ACCESS}."


Precondition: TypeAlias = Callable[[Transaction], Awaitable[None]]  # raises an error if the change must not be made


class OperationContext(Protocol):
    """Who calls an operation, and how it is done."""

    @property
    def caller(self) -> Caller: ...

    @property
    def warnings(self) -> list[str]:
        """The warnings that are collected while the operation runs."""

    @property
    def precondition(self) -> Precondition | None:
        """The first step of the transaction that makes the change."""

    def write_mode(self) -> WriteMode: ...


class ManagementContext(Struct, frozen=True):
    """The context of a call in process."""

    caller: Caller
    dry_run: bool = False
    override: bool = False
    precondition: Precondition | None = None
    warnings: list[str] = field(default_factory=list)

    def write_mode(self) -> WriteMode:
        return WriteMode(self.dry_run, self.override, self.caller.actor)


class OperationResult(Struct, Generic[T], frozen=True):
    """A write that was done, or rolled back if it was a dry run."""

    context: OperationContext
    result: T
    impact: Impact  # as far as the caller may see it
    is_dry_run: bool
    of_one_application: bool

    def with_result(self, result: R) -> "OperationResult[R]":
        return OperationResult(self.context, result, self.impact, self.is_dry_run, self.of_one_application)

    def members(self, render: Callable[[T], dict[str, Any]] = lambda _: {}) -> dict[str, Any]:
        """Returns what ``render`` makes of the result, or the impact of a dry run, with the warnings."""
        warnings = self.context.warnings
        if not self.is_dry_run:
            return render(self.result) | ({"warnings": warnings} if warnings else {})
        members = self.impact.json(with_application=not self.of_one_application)
        return {**members, "warnings": [*warnings, *members["warnings"]]}

    def response(self, render: Callable[[T], dict[str, Any]] = lambda _: {}) -> dict[str, Any]:
        """Returns the response of an endpoint of §4."""
        return {"status": "OK", **self.members(render)}


class PermissionWrites:
    def __init__(self, writer: PermissionWriter, authorizer: Authorizer) -> None:
        self._writer = writer
        self._authorizer = authorizer

    async def run(
        self,
        context: OperationContext,
        scope: Scope,
        work: Callable[Concatenate[Transaction, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> OperationResult[T]:
        """Runs ``work(tx, *args)`` in one transaction, or rolls it back if the context asks for a dry run."""
        mode = context.write_mode()
        if mode.override:
            rights = await self._authorizer.caller_rights(context.caller)
            manages = rights.granted.has_root_rule(MANAGE_APPLICATIONS)
            mode = replace(mode, overridable=overridable_by(is_root=rights.is_root, manages_applications=manages))

        async def checked(tx: Transaction) -> T:
            if context.precondition is not None:
                await context.precondition(tx)
            return await work(tx, *args, **kwargs)

        try:
            written = await self._writer.write(mode, scope, checked)
        except AssertionFailed as error:
            raise (error if await self._is_root(context) else error.without_users()) from None
        one_application = len(scope.changed_applications) == 1 and not scope.projects
        impact = written.impact
        if mode.dry_run:
            impact = await self._visible(context, scope, impact)
        else:
            context.warnings.extend(impact.warnings)
        return OperationResult(context, written.result, impact, mode.dry_run, one_application)

    async def _visible(self, context: OperationContext, scope: Scope, impact: Impact) -> Impact:
        if await self._is_root(context):
            return impact
        rights: dict[int, CallerRights | None] = {}
        for application_id in scope.changed_applications | {change.application_id for change in impact.changes}:
            try:
                rights[application_id] = await self._authorizer.caller_rights(context.caller, application_id)
            except Forbidden:  # the caller's credentials are not valid for this application
                rights[application_id] = None

        def select(change: PermissionChange) -> PermissionChange | None:
            if change.user_id == context.caller.user_id:
                return change
            granted = rights[change.application_id]
            return _readable(change, granted) if granted is not None else None

        # Whether the caller is warned must not depend on the users who are affected.
        if scope.projects or not all(_reads_everyone(rights[key]) for key in scope.changed_applications):
            impact = replace(impact, warnings=(*impact.warnings, HIDDEN_USERS))
        return impact.without_violators().visible(select)

    async def _is_root(self, context: OperationContext) -> bool:
        try:
            return (await self._authorizer.caller_rights(context.caller)).is_root
        except Forbidden:  # the caller has only a service JWT, which is valid for its own applications
            return False


def _reads_everyone(rights: CallerRights | None) -> bool:
    return rights is not None and rights.granted.readable_sections(own=False).issuperset(LISTED_SECTIONS)


def _readable(change: PermissionChange, rights: CallerRights) -> PermissionChange | None:
    """Returns the entries of another user's change that the caller may read, or None if there are none."""
    sections = rights.granted.readable_sections(own=False)

    def may_read(entry: str) -> bool:
        if change.application_id == CENTRAL_APPLICATION_ID and entry.startswith(_PROJECT_PREFIX):
            project_id = entry.removeprefix(_PROJECT_PREFIX).partition(".")[0]
            if rights.allow(Operation.MEMBERSHIP_GET, project_id=project_id):
                return True
        return section_of(entry) in sections

    gained, lost = (tuple(filter(may_read, entries)) for entries in (change.gained, change.lost))
    return change._replace(gained=gained, lost=lost) if gained or lost else None
