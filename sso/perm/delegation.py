"""Checks writes that give or take away rights over a project: callers may do so only with rights that they hold.

Only rules that the service itself interprets count (`PROJECT_RULES`). All other rules are the business of applications:
a caller who may save a membership, a group or the settings of a project may give them there.

The check compares the project before and after the write, inside the transaction of the write, so all endpoints share
it. Writes of the operator are not checked.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from msgspec import Struct, field

from sso.core.errors import Forbidden
from sso.db.transaction import Transaction, run_pure
from sso.perm.authorization import rights_of
from sso.perm.caller import Caller
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.held_rules import HeldRules, assignment_end
from sso.perm.engine.management_rights import MANAGE_APPLICATIONS, held_in_projects
from sso.perm.engine.project_exclusion import project_exclusion
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rights import Rights
from sso.perm.engine.secret_rights import ALL, secret_rights
from sso.perm.engine.time_windows import TimeBound
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.membership import MemberRole
from sso.perm.stores.compilation import read_application
from sso.perm.stores.facts import read_facts
from sso.perm.stores.locks import lock_active_project
from sso.perm.stores.project_state import (
    MANY_MEMBERS,
    KnownUser,
    ProjectState,
    read_resources,
    read_states,
    read_users,
)

NOT_HELD = "role %s: only a caller who has all its rules over the project may give it or take it away"
NOT_REMOVABLE = "the user has a role in %s that you could not take away"
# The name of the role may be hidden from the caller.
NOT_GRANTABLE = "this change affects a protected role of an application: canModifySchema is required there"
ACCESS_CHANGED = "this change affects the access of members with roles that you do not have"


@asynccontextmanager
async def delegated_write(
    tx: Transaction, caller: Caller, project_id: str, applications: Iterable[int] = ()
) -> AsyncIterator[None]:
    """Locks the project, and checks the writes inside this block when it ends.

    ``applications`` are those whose roles the write names. Raises Forbidden if the write gives or takes rights that the
    caller does not hold.
    """
    delegation = await Delegation.begin(tx, caller, project_id, applications)
    yield
    await delegation.check()


async def require_removable(tx: Transaction, caller: Caller, project_id: str, user_id: str) -> None:
    """Raises Forbidden if the user has a role in the project that the caller may not take away."""
    delegation = await Delegation.begin(tx, caller, project_id)
    if user_id in delegation.access_with_unheld_roles:
        raise Forbidden(NOT_REMOVABLE % project_id)


async def read_rights(tx: Transaction, caller: Caller) -> tuple[CompiledApplication, Rights]:
    """Returns the central application, and the rights of the caller as the transaction sees them now."""
    central = await read_application(tx, CENTRAL_APPLICATION_ID)
    facts = await read_facts(tx, caller.user_id, CENTRAL_APPLICATION_ID, caller.connection_address)
    assert central is not None  # it is built in
    assert facts is not None
    return central, rights_of(caller, compute_permissions(central, facts, caller.now))


class Delegation(Struct):
    """The state of a project and the rights of the caller before a write."""

    tx: Transaction
    caller: Caller
    project_id: str
    central: CompiledApplication
    before: ProjectState
    rights: Rights
    held_rules: HeldRules
    held_roles: dict[tuple[str, str, str, int | None], bool] = field(default_factory=dict)
    grantable: dict[int, frozenset[str]] = field(default_factory=dict)  # roles by application
    # The members with a role that the caller does not hold, and when each of them has access to the project.
    access_with_unheld_roles: dict[str, "AccessTimes"] = field(default_factory=dict)

    @classmethod
    async def begin(
        cls, tx: Transaction, caller: Caller, project_id: str, applications: Iterable[int] = ()
    ) -> "Delegation":
        """Locks the applications whose roles the write names, then the project, and reads the state before it."""
        await lock_active_project(tx, project_id, applications)
        before = (await read_states(tx, [project_id]))[project_id]
        central, rights = await read_rights(tx, caller)
        access = next((item for item in rights.central.projects if item.project.id == project_id), None)
        held_rules = HeldRules(central, access, held_in_projects(rights.management))
        delegation = cls(tx, caller, project_id, central, before, rights, held_rules)
        await delegation._read_before(applications)
        return delegation

    async def _read_before(self, applications: Iterable[int]) -> None:
        """Reads the state that the write may change. The caller's own rights count as they are before the write."""
        has_many = len(self.before.members) > MANY_MEMBERS
        user_ids = await run_pure(self.tx, has_many, self._members_with_unheld_roles)
        users = await read_users(self.tx, user_ids)
        self.access_with_unheld_roles = {user_id: _access_times(self.before, users, user_id) for user_id in user_ids}
        if not self.rights.is_root:
            # The write itself refuses applications of other projects.
            own = (await read_resources(self.tx, self.project_id)).applications
            for application_id in own & {*applications, *self.before.facts.services}:
                self.grantable[application_id] = await self._grantable(application_id)

    async def _grantable(self, application_id: int) -> frozenset[str]:
        """Returns roles of an application that the caller may grant to groups, and revoke from them."""
        application = await read_application(self.tx, application_id)
        facts = await read_facts(self.tx, self.caller.user_id, application_id, self.caller.connection_address)
        if application is None or facts is None:
            return frozenset()
        secret = secret_rights(application.schema, facts.own, self.caller.now)
        defines_or_assigns_roles = (
            "canModifySchema" in secret.application
            or secret.meta["roles.canWrite"] == ALL
            or MANAGE_APPLICATIONS in self.rights.management
        )
        return frozenset(
            name for name, role in application.roles.items() if defines_or_assigns_roles or not role.protected
        )

    def _members_with_unheld_roles(self) -> frozenset[str]:
        """Members with a role that the caller may not take away."""
        if self.rights.is_root:
            return frozenset()
        return frozenset(member.user_id for member in self.before.members if not self._may_remove(member))

    async def check(self) -> None:
        if self.rights.is_root:
            return
        after = (await read_states(self.tx, [self.project_id]))[self.project_id]
        has_many = len(self.before.members) + len(after.members) > MANY_MEMBERS
        await run_pure(self.tx, has_many, self._check_members, after)
        self._check_actions(after)
        await self._check_access(after)

    def _check_members(self, after: ProjectState) -> None:
        for member in self.before.members - after.members:
            if not self._may_remove(member):
                raise Forbidden(NOT_HELD % member.role)
        for member in after.members - self.before.members:
            if not self._holds_role(member, assignment_end(member.assignment)):
                raise Forbidden(NOT_HELD % member.role)

    def _may_remove(self, member: MemberRole) -> bool:
        return member.assignment.ended(self.caller.now) or self._holds_role(member, None)

    def _holds_role(self, member: MemberRole, end: int | None) -> bool:
        role = self.central.roles.get(member.role)
        if role is None:
            return True  # a role that does not exist gives nothing
        key = (member.role, member.level, member.resource, end)
        if key not in self.held_roles:
            self.held_roles[key] = self.held_rules.cover_role(role, member.level, member.resource, end)
        return self.held_roles[key]

    def _check_actions(self, after: ProjectState) -> None:
        """Checks grants and revokes that changed, or whose group changed."""
        changed = self.before.actions ^ after.actions
        if any(item.action.role not in self.grantable.get(item.application_id, ()) for item in changed):
            raise Forbidden(NOT_GRANTABLE)

    async def _check_access(self, after: ProjectState) -> None:
        if self.before.access_rules == after.access_rules:
            return
        users = await read_users(self.tx, self.access_with_unheld_roles)
        before = self.access_with_unheld_roles.items()
        if any(times.vary or _access_times(after, users, user_id) != times for user_id, times in before):
            raise Forbidden(ACCESS_CHANGED)


class AccessTimes(NamedTuple):
    """Whether a user has access to a project at some time, and all the time."""

    sometimes: bool
    always: bool

    @property
    def vary(self) -> bool:
        """Whether time windows decide. The times of two states may then differ although these values are equal."""
        return self.sometimes != self.always


def _access_times(state: ProjectState, users: dict[str, KnownUser], user_id: str) -> AccessTimes:
    user = users[user_id].facts if user_id in users else UserFacts(user_id)
    bounds = (TimeBound.SOMETIMES, TimeBound.ALWAYS)
    return AccessTimes(*(project_exclusion(state.facts, user, bound) is None for bound in bounds))
