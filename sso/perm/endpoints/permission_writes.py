"""Runs the writes of the endpoints, and renders what a dry run would change.

A dry run shows the permissions of other users only as far as the caller may read them: entries of an application in the
sections that its ``secret_data.meta`` lets the caller read, and entries of a project if the caller may read its
membership. Users whose entries are all hidden are not counted. Only root learns which users violate an assertion.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from sso.core.errors import Forbidden
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.changes.assertion_check import AssertionFailed
from sso.perm.changes.impact import Impact, PermissionChange
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import PermissionWriter, overridable_by
from sso.perm.engine.management_rights import MANAGE_APPLICATIONS
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, PROJECT_ACCESS
from sso.perm.engine.rules import LISTED_SECTIONS, section_of
from sso.perm.request import PermissionRequest

P = ParamSpec("P")
T = TypeVar("T")

HIDDEN_USERS = "users whose permissions you may not read are neither shown nor counted"
_PROJECT_PREFIX = f"private_data.{PROJECT_ACCESS}."


@dataclass(frozen=True)
class EndpointWrite(Generic[T]):
    """A write that was done, or rolled back if it was a dry run."""

    request: PermissionRequest
    result: T
    impact: Impact  # as far as the caller may see it
    is_dry_run: bool
    of_one_application: bool

    def response(self, render: Callable[[T], dict[str, Any]] = lambda _: {}) -> dict[str, Any]:
        """The response with the members that ``render`` makes of the result; for a dry run, with the impact."""
        if not self.is_dry_run:
            return self.request.response(**render(self.result))
        members = self.impact.json(with_application=not self.of_one_application)
        return {"status": "OK", **members, "warnings": [*self.request.warnings, *members["warnings"]]}


class PermissionWrites:
    def __init__(self, writer: PermissionWriter, authorizer: Authorizer) -> None:
        self._writer = writer
        self._authorizer = authorizer

    async def run(
        self,
        request: PermissionRequest,
        scope: Scope,
        work: Callable[Concatenate[Transaction, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> EndpointWrite[T]:
        """Run ``work(tx, *args)`` in one transaction, or roll it back if the request asks for a dry run."""
        mode = request.write_mode()
        if mode.override:
            rights = await self._authorizer.caller_rights(request.caller)
            manages = rights.granted.has_root_rule(MANAGE_APPLICATIONS)
            mode = replace(mode, overridable=overridable_by(is_root=rights.is_root, manages_applications=manages))

        async def checked(tx: Transaction) -> T:
            if request.precondition is not None:
                await request.precondition(tx)
            return await work(tx, *args, **kwargs)

        try:
            written = await self._writer.write(mode, scope, checked)
        except AssertionFailed as error:
            raise (error if await self._is_root(request) else error.without_users()) from None
        one_application = len(scope.changed_applications) == 1 and not scope.projects
        impact = written.impact
        if mode.dry_run:
            impact = await self._visible(request, scope, impact)
        else:
            request.warnings.extend(impact.warnings)
        return EndpointWrite(request, written.result, impact, mode.dry_run, one_application)

    async def _visible(self, request: PermissionRequest, scope: Scope, impact: Impact) -> Impact:
        if await self._is_root(request):
            return impact
        rights: dict[int, CallerRights | None] = {}
        for application_id in scope.changed_applications | {change.application_id for change in impact.changes}:
            try:
                rights[application_id] = await self._authorizer.caller_rights(request.caller, application_id)
            except Forbidden:  # the caller's credentials are not valid for this application
                rights[application_id] = None

        def select(change: PermissionChange) -> PermissionChange | None:
            if change.user_id == request.caller.user_id:
                return change
            granted = rights[change.application_id]
            return _readable(change, granted) if granted is not None else None

        # Whether the caller is warned must not depend on the users who are affected.
        if scope.projects or not all(_reads_everyone(rights[key]) for key in scope.changed_applications):
            impact = replace(impact, warnings=(*impact.warnings, HIDDEN_USERS))
        return impact.without_violators().visible(select)

    async def _is_root(self, request: PermissionRequest) -> bool:
        return (await self._authorizer.caller_rights(request.caller)).is_root


def _reads_everyone(rights: CallerRights | None) -> bool:
    return rights is not None and rights.granted.readable_sections(own=False).issuperset(LISTED_SECTIONS)


def _readable(change: PermissionChange, rights: CallerRights) -> PermissionChange | None:
    """The entries of another user's change that the caller may read; None if there are none."""
    sections = rights.granted.readable_sections(own=False)

    def may_read(entry: str) -> bool:
        if change.application_id == CENTRAL_APPLICATION_ID and entry.startswith(_PROJECT_PREFIX):
            project_id = entry.removeprefix(_PROJECT_PREFIX).partition(".")[0]
            if rights.allow(Operation.MEMBERSHIP_GET, project_id=project_id):
                return True
        return section_of(entry) in sections

    gained, lost = (tuple(filter(may_read, entries)) for entries in (change.gained, change.lost))
    return change._replace(gained=gained, lost=lost) if gained or lost else None
