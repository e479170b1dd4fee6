"""The service and its projects keep an administrator: a write that takes the last one away is refused.

What a write replaces counts as a whole, so it may take a right from one user and give it to another. An administrator
whose role ends counts less than one whose role does not end.
"""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.administration import administration, possible_administrators
from sso.perm.changes.scope import Scope
from sso.perm.changes.state_comparison import StateComparison
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.project_access import PROJECT_LEVEL
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.input.membership import MemberRole
from sso.perm.stores.administrators import (
    Administration,
    projects_of_users,
    projects_with_roles,
    read_root_administration,
    read_root_assignments,
)
from sso.perm.stores.compilation import read_application
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.locks import lock_applications, lock_projects, share_lock_applications
from sso.perm.stores.permission_state import PermissionState
from sso.perm.stores.project_state import MANY_MEMBERS, KnownUser, ProjectState, read_states, read_users
from sso.perm.stores.user_rows import UserAccount

NO_ROOT = "this would disable or remove the only administrator of the service: make someone else an administrator first"
NO_PERMANENT_ROOT = "the service would have no administrator whose role root does not end"
NO_ADMINISTRATOR = "the project would have no administrator with access to it"
NO_PERMANENT_ADMINISTRATOR = "the project would have no administrator whose role does not end"
NO_ADMINISTRATOR_OF_ONE = "a project would have no administrator with access to it"  # of those that the write affects


class LastAdministrator(PermissionConflict):
    """The write takes the last administrator from the project, or from the service if ``project_title`` is None."""

    project_title: str | None = None


class RootGuard(Struct):
    """Refuses a write that takes the last administrator from the service.

    The central application is locked: every change of the administrators holds its lock, so that two of them cannot
    each rely on the administrator that the other one removes.
    """

    scope: Scope
    administered: Administration = Administration.NONE  # before the write, as far as it may change

    async def begin(self, tx: Transaction) -> None:
        if self._assigns_centrally:
            self.administered = await read_root_administration(tx)

    async def check(self, tx: Transaction, disabled: frozenset[str] = frozenset()) -> None:
        """Raises LastAdministrator. ``disabled`` are the users whom the write has disabled."""
        if disabled and not self._assigns_centrally:
            self.administered = await read_root_assignments(tx, disabled)
            if self.administered:
                await lock_applications(tx, [CENTRAL_APPLICATION_ID])
        if self.administered:
            left = await read_root_administration(tx)
            if left < self.administered:
                raise LastAdministrator(NO_PERMANENT_ROOT if left else NO_ROOT)

    @property
    def _assigns_centrally(self) -> bool:
        return any(application_id == CENTRAL_APPLICATION_ID for _, application_id in self.scope.records)


ProjectStates: TypeAlias = dict[str, tuple[ProjectState, ProjectState]]  # by id, before and after the write


class LastAdministrators:
    """Refuses a write that takes the last administrator from the service or from a project.

    A project may lose it when its settings, groups or members change, when a role of the central application changes
    that its members have, or when a member is disabled. Every such write holds a lock on the central application.
    """

    def __init__(self, facts: StoredFacts, scope: Scope, now: int) -> None:
        self._facts = facts
        self._scope = scope
        self._now = now
        self._root_guard = RootGuard(scope)
        self._with_roles: dict[str, ProjectState] = {}  # projects outside the scope, before the write

    async def begin(self, tx: Transaction, before: PermissionState) -> None:
        await self._root_guard.begin(tx)
        if self._central_roles and (central := before.compiled.get(CENTRAL_APPLICATION_ID)):
            project_ids = await projects_with_roles(tx, self._central_roles) - self._scope.projects
            self._with_roles = await read_states(tx, project_ids, _generic_roles(central)) if project_ids else {}

    async def check(self, tx: Transaction, states: StateComparison) -> None:
        """Raises LastAdministrator."""
        old_accounts = states.accounts_before
        disabled = frozenset(
            user_id
            for user_id, account in states.accounts_after.items()
            if account.disabled and user_id in old_accounts and not old_accounts[user_id].disabled
        )
        await self._root_guard.check(tx, disabled)
        excluded = disabled | _newly_banned(states)
        both = *states.before.members.values(), *states.after.members.values()
        has_many, anyway = any(len(users) > MANY_MEMBERS for users in both), bool(self._central_roles or excluded)
        changed = await run_pure(tx, has_many, self._changed_projects, states, anyway)
        if not (changed or self._with_roles or excluded):
            return
        central = await self._central(tx, states)
        if central is None:
            return
        if self._with_roles:
            after = await read_states(tx, self._with_roles, _generic_roles(central[1]))
            changed |= {key: (old, after[key]) for key, old in self._with_roles.items() if key in after}
        if excluded:
            changed |= await self._projects_of(tx, excluded, frozenset(changed) | self._scope.projects)
        await self._compare(tx, central, changed, old_accounts)

    async def _compare(
        self,
        tx: Transaction,
        central: tuple[CompiledApplication, CompiledApplication],
        projects: ProjectStates,
        old_accounts: Mapping[str, UserAccount],
    ) -> None:
        has_many = any(len(state.members) > MANY_MEMBERS for states in projects.values() for state in states)
        users = await read_users(tx, await run_pure(tx, has_many, _possible_administrators, central, projects))
        users_before = users | {
            key: KnownUser(item.facts, item.disabled, item.bans) for key, item in old_accounts.items()
        }
        for project_id, (old, new) in projects.items():
            administered = await self._administration(tx, central[0], old, users_before)
            if administered and (left := await self._administration(tx, central[1], new, users)) < administered:
                raise self._refusal(project_id, new, left)

    @property
    def _central_roles(self) -> list[str]:
        roles = self._scope.roles | self._scope.removed_roles
        return [name for application_id, name in roles if application_id == CENTRAL_APPLICATION_ID]

    def _changed_projects(self, states: StateComparison, anyway: bool) -> ProjectStates:
        """Returns the projects in the scope that exist before and after the write, if their access has changed."""
        projects = {}
        for project_id in sorted(self._scope.projects):
            old, new = _project_state(states.before, project_id), _project_state(states.after, project_id)
            if old is None or new is None:
                continue
            if anyway or (old.members, old.access_rules) != (new.members, new.access_rules):
                projects[project_id] = old, new
        return projects

    async def _projects_of(self, tx: Transaction, users: frozenset[str], others: frozenset[str]) -> ProjectStates:
        """Locks and returns the projects of disabled or banned users that did not change otherwise."""
        project_ids = await projects_of_users(tx, users) - others
        if not project_ids:
            return {}
        await share_lock_applications(tx, [CENTRAL_APPLICATION_ID])
        await lock_projects(tx, project_ids)
        return {key: (state, state) for key, state in (await read_states(tx, project_ids)).items()}

    async def _central(
        self, tx: Transaction, states: StateComparison
    ) -> tuple[CompiledApplication, CompiledApplication] | None:
        """Returns the central application before and after the write, or None if it is new."""
        await states.after.compile(tx, self._facts, [CENTRAL_APPLICATION_ID])
        after = states.after.compiled.get(CENTRAL_APPLICATION_ID) or await read_application(tx, CENTRAL_APPLICATION_ID)
        is_changed = CENTRAL_APPLICATION_ID in self._scope.applications
        before = states.before.compiled.get(CENTRAL_APPLICATION_ID) if is_changed else after
        return (before, after) if before is not None and after is not None else None

    async def _administration(
        self, tx: Transaction, central: CompiledApplication, state: ProjectState, users: Mapping[str, KnownUser]
    ) -> Administration:
        return await run_pure(tx, len(state.members) > MANY_MEMBERS, administration, central, state, users, self._now)

    def _refusal(self, project_id: str, state: ProjectState, left: Administration) -> LastAdministrator:
        message = NO_PERMANENT_ADMINISTRATOR if left else NO_ADMINISTRATOR
        error = LastAdministrator(message if self._scope.projects == {project_id} else NO_ADMINISTRATOR_OF_ONE)
        error.project_title = state.facts.title
        return error


def _possible_administrators(
    central: tuple[CompiledApplication, CompiledApplication], projects: ProjectStates
) -> frozenset[str]:
    return frozenset(
        user_id
        for states in projects.values()
        for compiled, state in zip(central, states, strict=True)
        for user_id in possible_administrators(compiled, state.members)
    )


def _newly_banned(states: StateComparison) -> frozenset[str]:
    """Returns the users whom the write has banned in a project."""
    return frozenset(
        user_id
        for user_id, account in states.accounts_after.items()
        if user_id in states.accounts_before
        and any(ban.project_id for ban in set(account.bans) - set(states.accounts_before[user_id].bans))
    )


def _generic_roles(central: CompiledApplication) -> list[str]:
    return [name for name, role in central.roles.items() if role.rules_by_level[PROJECT_LEVEL]]


def _project_state(state: PermissionState, project_id: str) -> ProjectState | None:
    """Returns None if the project does not exist or is removed."""
    project = state.projects.get(project_id)
    if project is None or project.removed:
        return None
    members = state.members.get(project_id, {}).items()
    return ProjectState(project, frozenset(MemberRole(user_id, *row) for user_id, rows in members for row in rows))
