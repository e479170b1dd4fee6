"""Whether projects have an administrator: an enabled user with every project rule of the role admin in the project."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import IntEnum

from sso.core.errors import Forbidden
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction, run_pure
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import Membership
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.held_rules import HeldRules
from sso.perm.engine.project_access import PROJECT_LEVEL, compute_project_access
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.input.membership import MemberRole
from sso.perm.stores.builtin_roles import ADMIN_ROLE
from sso.perm.stores.compilation import read_application
from sso.perm.stores.locks import lock_project, share_lock_applications
from sso.perm.stores.project_state import MANY_MEMBERS, KnownUser, ProjectState, read_states, read_users

MANAGE_PROJECT = "project.can_manage_project"  # an administrator needs it, even if the role admin does not give it
NO_ADMINISTRATOR = "the project would have no administrator with access to it"
NO_PERMANENT_ADMINISTRATOR = "the project would have no administrator whose role does not end"

_NOW = Statement("SELECT CAST(floor(extract(epoch FROM clock_timestamp())) AS bigint)")
_WITH_ROLES = Statement(
    """SELECT DISTINCT m.project_id FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
    WHERE m.role = ANY(CAST(:names AS text[])) AND m.level = 'project'"""
)


class Administration(IntEnum):
    """For how long a project has an administrator."""

    NONE = 0
    TEMPORARY = 1  # the roles of all administrators expire
    PERMANENT = 2


def is_administrator(central: CompiledApplication, held_rules: HeldRules, *, permanently: bool = False) -> bool:
    """Whether these rules, in a project, include every project rule of the role admin."""
    admin = central.roles.get(ADMIN_ROLE)
    rules = {rule.path for rule in admin.rules_by_level[PROJECT_LEVEL] if rule.listed} if admin else set()
    return held_rules.cover_project_rules(rules | {MANAGE_PROJECT}, permanently=permanently)


def possible_administrators(central: CompiledApplication, members: Iterable[MemberRole]) -> frozenset[str]:
    """The users with a role that may make a user an administrator."""
    roles = {
        name
        for name, role in central.roles.items()
        if _manages(central, name) and assignable_through_project(role, generic=True)
    }
    return frozenset(member.user_id for member in members if member.level == PROJECT_LEVEL and member.role in roles)


def administration(
    central: CompiledApplication, state: ProjectState, users: Mapping[str, KnownUser], now: int
) -> Administration:
    """For how long the project has an administrator, counting all its members."""
    roles: dict[str, list[MemberRole]] = {}
    for member in state.members:
        if member.level == PROJECT_LEVEL:
            roles.setdefault(member.user_id, []).append(member)
    longest = Administration.NONE
    for user_id in possible_administrators(central, state.members):
        if user_id in users and not users[user_id].disabled:
            longest = max(longest, _administration(central, state, users[user_id], roles[user_id], now))
        if longest is Administration.PERMANENT:
            break
    return longest


def _administration(
    central: CompiledApplication, state: ProjectState, user: KnownUser, roles: list[MemberRole], now: int
) -> Administration:
    membership = Membership(project=tuple(member.assignment for member in roles))
    facts = replace(state.facts, membership=membership)
    held_rules = HeldRules(
        central, compute_project_access(central, facts, user.facts, central.condition_index.find(user.facts), now)
    )
    if is_administrator(central, held_rules, permanently=True):
        return Administration.PERMANENT
    return Administration.TEMPORARY if is_administrator(central, held_rules) else Administration.NONE


def _manages(central: CompiledApplication, name: str) -> bool:
    return any(
        rule.path == MANAGE_PROJECT and rule.listed for rule in central.roles[name].rules_by_level[PROJECT_LEVEL]
    )


@dataclass(frozen=True)
class AdministratorGuard:
    """A locked project before a write. If it has an administrator, it must have one after the write."""

    tx: Transaction
    project_id: str
    now: int
    central: CompiledApplication
    before: ProjectState
    administered: Administration

    @classmethod
    async def begin(
        cls, tx: Transaction, project_id: str, now: int, applications: Iterable[int] = ()
    ) -> "AdministratorGuard":
        """Lock the applications whose roles the write names, then the project, and read the state before the write."""
        await share_lock_applications(tx, {CENTRAL_APPLICATION_ID, *applications})
        if (await lock_project(tx, project_id))["removed"]:
            raise Forbidden("removed")
        central = await read_application(tx, CENTRAL_APPLICATION_ID)
        assert central is not None
        before = (await read_states(tx, [project_id]))[project_id]
        users = await read_users(tx, possible_administrators(central, before.members))
        return cls(tx, project_id, now, central, before, await _administer(tx, central, before, users, now))

    async def read_after(self) -> ProjectState:
        return (await read_states(self.tx, [self.project_id]))[self.project_id]

    async def check(self, after: ProjectState) -> None:
        """Raise PermissionConflict if the project lost its last administrator, or its last permanent one."""
        if self.administered:
            users = await read_users(self.tx, possible_administrators(self.central, after.members))
            left = await _administer(self.tx, self.central, after, users, self.now)
            if left < self.administered:
                raise PermissionConflict(NO_PERMANENT_ADMINISTRATOR if left else NO_ADMINISTRATOR)


@asynccontextmanager
async def keep_administrator(tx: Transaction, project_id: str, applications: Iterable[int] = ()) -> AsyncIterator[None]:
    """Lock the project, and refuse writes inside this block that leave it without an administrator.

    ``applications`` are those whose roles the write names.
    """
    guard = await AdministratorGuard.begin(tx, project_id, await tx.value(_NOW), applications)
    yield
    await guard.check(await guard.read_after())


@asynccontextmanager
async def keep_administrators(tx: Transaction, application_id: int, roles: Collection[str]) -> AsyncIterator[None]:
    """Refuse changes of these roles inside this block that leave a project without an administrator.

    Only roles of the central application matter. The application must be locked: every change of the administrators of
    a project holds a lock on the central application.
    """
    if application_id != CENTRAL_APPLICATION_ID or not roles:
        yield
        return
    rows = await tx.rows(_WITH_ROLES, names=list(roles))
    async with keep_administrators_of(tx, [row["project_id"] for row in rows]):
        yield


@asynccontextmanager
async def keep_administrators_of(tx: Transaction, project_ids: Collection[str]) -> AsyncIterator[None]:
    """Refuse writes inside this block that leave one of these projects without an administrator.

    The central application must be locked, as in `keep_administrators`.
    """
    now: int = await tx.value(_NOW)
    before = await _read_administration(tx, project_ids, now)
    yield
    after = await _read_administration(tx, before, now) if before else {}
    # A project without an entry in ``after`` was removed.
    if any(after.get(project_id, administered) < administered for project_id, administered in before.items()):
        raise PermissionConflict("a project would have no administrator with access to it")


async def _read_administration(tx: Runner, project_ids: Collection[str], now: int) -> dict[str, Administration]:
    central = await read_application(tx, CENTRAL_APPLICATION_ID)
    assert central is not None
    generic = [name for name, role in central.roles.items() if role.rules_by_level[PROJECT_LEVEL]]
    states = await read_states(tx, project_ids, generic)
    users = await read_users(
        tx, {user_id for state in states.values() for user_id in possible_administrators(central, state.members)}
    )
    return {project_id: await _administer(tx, central, state, users, now) for project_id, state in states.items()}


async def _administer(
    runner: Runner, central: CompiledApplication, state: ProjectState, users: Mapping[str, KnownUser], now: int
) -> Administration:
    """Like `administration`, in a thread if there are many members."""
    takes_long = len(state.members) > MANY_MEMBERS
    return await run_pure(runner, takes_long, administration, central, state, users, now)
