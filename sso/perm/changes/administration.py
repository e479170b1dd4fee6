"""Whether a project has an administrator: an enabled user with every project rule of the role admin in the project."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import Membership
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.held_rules import HeldRules
from sso.perm.engine.project_access import PROJECT_LEVEL, compute_project_access
from sso.perm.engine.project_exclusion import project_exclusion
from sso.perm.engine.time_windows import TimeBound
from sso.perm.input.membership import MemberRole
from sso.perm.stores.administrators import Administration
from sso.perm.stores.builtin_roles import ADMIN_ROLE
from sso.perm.stores.project_state import KnownUser, ProjectState

MANAGE_PROJECT = "project.can_manage_project"  # an administrator needs it, even if the role admin does not give it


def possible_administrators(central: CompiledApplication, members: Iterable[MemberRole]) -> frozenset[str]:
    """Returns the users with a role that may make a user an administrator."""
    roles = {
        name
        for name, role in central.roles.items()
        if _manages(central, name) and assignable_through_project(role, generic=True)
    }
    return frozenset(member.user_id for member in members if member.level == PROJECT_LEVEL and member.role in roles)


def administration(
    central: CompiledApplication, state: ProjectState, users: Mapping[str, KnownUser], now: int
) -> Administration:
    """Returns for how long the project has an administrator, counting all its members."""
    roles: dict[str, list[MemberRole]] = {}
    for member in state.members:
        if member.level == PROJECT_LEVEL:
            roles.setdefault(member.user_id, []).append(member)
    longest = Administration.NONE
    for user_id in possible_administrators(central, state.members):
        if user_id in users and not users[user_id].is_excluded(state.facts.id, now):
            longest = max(longest, _administration(central, state, users[user_id], roles[user_id], now))
        if longest is Administration.PERMANENT:
            break
    return longest


def _administration(
    central: CompiledApplication, state: ProjectState, user: KnownUser, roles: list[MemberRole], now: int
) -> Administration:
    membership = Membership(project=tuple(member.assignment for member in roles))
    facts = replace(state.facts, membership=membership)
    met_conditions = central.condition_index.find(user.facts, now)
    held_rules = HeldRules(central, compute_project_access(central, facts, user.facts, met_conditions, now))
    has_access = project_exclusion(facts, user.facts, TimeBound.ALWAYS) is None
    if has_access and _is_administrator(central, held_rules, permanently=True):
        return Administration.PERMANENT
    return Administration.TEMPORARY if _is_administrator(central, held_rules) else Administration.NONE


def _is_administrator(central: CompiledApplication, held_rules: HeldRules, *, permanently: bool = False) -> bool:
    """Returns whether these rules, in a project, include every project rule of the role admin."""
    admin = central.roles.get(ADMIN_ROLE)
    rules = {rule.path for rule in admin.rules_by_level[PROJECT_LEVEL] if rule.listed} if admin else set()
    return held_rules.cover_project_rules(rules | {MANAGE_PROJECT}, permanently=permanently)


def _manages(central: CompiledApplication, name: str) -> bool:
    return any(
        rule.path == MANAGE_PROJECT and rule.listed for rule in central.roles[name].rules_by_level[PROJECT_LEVEL]
    )
