"""Whether projects have an administrator: an enabled user who has every project rule of the role admin there, now."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import IntEnum

from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import Membership
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.held_rules import HeldRules
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.project_access import PROJECT_LEVEL, compute_project_access
from sso.perm.errors import PermissionConflict
from sso.perm.stores.builtin_roles import ADMIN_ROLE
from sso.perm.stores.facts import read_application
from sso.perm.stores.project_state import KnownUser, Member, ProjectState, read_people, read_states

MANAGE = "project.can_manage_project"  # without it nobody administers a project, whatever the role admin gives
NONE_LEFT = "the project would have no administrator with access to it"
NONE_LASTING = "the project would have no administrator whose role does not end"

_WITH_ROLES = Statement(
    """SELECT DISTINCT m.project_id FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
    WHERE m.role = ANY(CAST(:names AS text[])) AND m.level = 'project'"""
)


class Administration(IntEnum):
    """For how long a project has an administrator."""

    NONE = 0
    FOR_A_TIME = 1  # all their roles end
    LASTING = 2


def administers(central: CompiledApplication, holdings: HeldRules, *, for_good: bool = False) -> bool:
    admin = central.roles.get(ADMIN_ROLE)
    rules = {rule.path for rule in admin.rules_by_level[PROJECT_LEVEL] if rule.listed} if admin else set()
    return holdings.cover_project_rules(rules | {MANAGE}, permanently=for_good)


def candidates(central: CompiledApplication, members: Iterable[Member]) -> frozenset[str]:
    """Users with a role that may make them administrators."""
    roles = {
        name
        for name, role in central.roles.items()
        if _manages(central, name) and assignable_through_project(role, generic=True)
    }
    return frozenset(member.user_id for member in members if member.level == PROJECT_LEVEL and member.role in roles)


def administration(
    central: CompiledApplication, state: ProjectState, people: Mapping[str, KnownUser], now: int
) -> Administration:
    given: dict[str, list[Member]] = {}
    for member in state.members:
        if member.level == PROJECT_LEVEL:
            given.setdefault(member.user_id, []).append(member)
    found = Administration.NONE
    for user_id in candidates(central, state.members):
        if user_id in people and not people[user_id].disabled:
            found = max(found, _administration(central, state, people[user_id], given[user_id], now))
    return found


def _administration(
    central: CompiledApplication, state: ProjectState, user: KnownUser, given: list[Member], now: int
) -> Administration:
    membership = Membership(project=tuple(member.assignment for member in given))
    facts = replace(state.facts, membership=membership)
    holdings = HeldRules(
        central, compute_project_access(central, facts, user.facts, central.condition_index.find(user.facts), now)
    )
    if administers(central, holdings, for_good=True):
        return Administration.LASTING
    return Administration.FOR_A_TIME if administers(central, holdings) else Administration.NONE


def _manages(central: CompiledApplication, name: str) -> bool:
    return any(rule.path == MANAGE and rule.listed for rule in central.roles[name].rules_by_level[PROJECT_LEVEL])


async def administered_through(
    tx: Runner, application_id: int, roles: Collection[str], now: int
) -> dict[str, Administration]:
    """Projects that use one of these roles. Only roles of the central application count, which must be locked:
    everything that changes who administers a project holds a lock on it."""
    if application_id != CENTRAL_APPLICATION_ID or not roles:
        return {}
    rows = await tx.rows(_WITH_ROLES, names=list(roles))
    return await _administered(tx, [row["project_id"] for row in rows], now)


async def require_administrators(tx: Runner, before: Mapping[str, Administration], now: int) -> None:
    """Refuse what leaves one of these projects without an administrator, or only with some whose roles end."""
    after = await _administered(tx, before, now) if before else {}
    # One that is missing now was removed meanwhile.
    if any(after.get(project_id, had) < had for project_id, had in before.items()):
        raise PermissionConflict("a project would have no administrator with access to it")


async def _administered(tx: Runner, project_ids: Collection[str], now: int) -> dict[str, Administration]:
    central = await read_application(tx, CENTRAL_APPLICATION_ID)
    assert central is not None
    generic = [name for name, role in central.roles.items() if role.rules_by_level[PROJECT_LEVEL]]
    states = await read_states(tx, project_ids, generic)
    users = {user_id for state in states.values() for user_id in candidates(central, state.members)}
    people = await read_people(tx, users)
    return {project_id: administration(central, state, people, now) for project_id, state in states.items()}
