"""The roles of an application that a user holds, and how the user came by each.

A user holds a role that is assigned, that is a default role, whose condition holds, or that the project of the
application grants to one of the user's groups. A role with a condition takes effect only while its condition holds,
however the user came by it; the condition of a default role is ignored. A revoke removes every role except default
roles.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from sso.perm.engine.compiled_application import CompiledApplication, CompiledRole
from sso.perm.engine.conditions import end_of
from sso.perm.engine.facts import GroupAction, PermissionFacts
from sso.perm.engine.groups import groups_with_member, membership_end
from sso.perm.engine.project_exclusion import project_exclusion
from sso.perm.engine.rules import earliest_end, latest_end
from sso.perm.engine.user_facts import UserFacts

ASSIGNMENT, DEFAULT, CONDITION, GROUP = "assignment", "default", "condition", "group"


class Origin(NamedTuple):
    """One way in which a user came by a role."""

    kind: str
    ends: int = 0
    project_id: str = ""
    group_id: str = ""


class HeldRole(Struct, frozen=True):
    name: str
    origins: tuple[Origin, ...]

    @property
    def ends(self) -> int:
        return latest_end(origin.ends for origin in self.origins)


class HeldRoles(Struct, frozen=True):
    effective: Mapping[str, HeldRole]  # sorted by name
    assigned_or_granted: frozenset[str]  # whether or not their condition holds
    met_conditions: frozenset[str]  # the names of all roles whose condition holds
    revoked: frozenset[str]


NO_ROLES = HeldRoles({}, frozenset(), frozenset(), frozenset())


def compute_held_roles(application: CompiledApplication, facts: PermissionFacts, now: int) -> HeldRoles:
    met_conditions = application.condition_index.find(facts.user, now)
    grants, revoked = _grants_and_revokes(application, facts, now)
    assigned_or_granted: set[str] = set()
    origins: dict[str, list[Origin]] = {role.name: [Origin(DEFAULT)] for role in application.default_roles}

    def add(role: CompiledRole, origin: Origin) -> None:
        assigned_or_granted.add(role.name)
        if role_applies(role, met_conditions):
            if role.windows:
                origin = origin._replace(ends=earliest_end((origin.ends, condition_end(role, facts.user, now))))
            origins.setdefault(role.name, []).append(origin)

    for assignment in facts.own.roles:
        role = application.roles.get(assignment.name)
        if role is not None and not assignment.ended(now) and role.name not in revoked:
            add(role, Origin(ASSIGNMENT, assignment.ends(now)))
    for name in met_conditions - revoked:
        role = application.roles[name]
        ends = condition_end(role, facts.user, now) if role.windows else 0
        origins.setdefault(name, []).append(Origin(CONDITION, ends))
    for grant in grants:
        if grant.role not in revoked:
            assert facts.home is not None
            ends = _group_end(facts, grant.group_id, now)
            add(application.roles[grant.role], Origin(GROUP, ends, facts.home.id, grant.group_id))
    effective = {name: HeldRole(name, tuple(origins[name])) for name in sorted(origins)}
    return HeldRoles(effective, frozenset(assigned_or_granted), met_conditions, revoked)


def condition_end(role: CompiledRole, user: UserFacts, now: int) -> int:
    """Returns when the condition of a role, which holds, ends by its time windows; 0 if it does not."""
    return end_of(role.condition, user, now) if role.windows and role.condition is not None else 0


def _group_end(facts: PermissionFacts, group_id: str, now: int) -> int:
    groups = facts.home.groups if facts.home else ()
    return next((membership_end(group, facts.user, now) for group in groups if group.id == group_id), 0)


def role_applies(role: CompiledRole, met_conditions: frozenset[str]) -> bool:
    """Returns whether a role that is assigned or granted to a user takes effect."""
    return role.condition is None or role.is_default or role.name in met_conditions


def assignable_through_project(role: CompiledRole, *, generic: bool) -> bool:
    """Returns whether a project may give the role to users.

    With ``generic``, a role with root rules is refused as well.
    """
    return not role.protected and not (generic and role.holds_root_rules)


def group_actions(application: CompiledApplication, facts: PermissionFacts) -> tuple[GroupAction, ...]:
    """Returns the grants and revokes of the application's roles by the project of the application."""
    return facts.home.services.get(application.application_id, ()) if facts.home else ()


def _grants_and_revokes(
    application: CompiledApplication, facts: PermissionFacts, now: int
) -> tuple[list[GroupAction], frozenset[str]]:
    """Returns the grants that reach the user, and the names of the revoked roles.

    Grants do not reach a user whom the project excludes. Revokes do.
    """
    actions = group_actions(application, facts)
    if not actions or facts.home is None:
        return [], frozenset()
    group_ids = groups_with_member(facts.home, (action.group_id for action in actions), facts.user, now)
    reaching = [action for action in actions if action.group_id in group_ids and action.role in application.roles]
    revoked = frozenset(
        action.role
        for action in reaching
        if action.action == "revoke" and not application.roles[action.role].is_default
    )
    grants = [
        action
        for action in reaching
        if action.action == "grant" and assignable_through_project(application.roles[action.role], generic=False)
    ]
    return ([] if grants and project_exclusion(facts.home, facts.user, now) else grants), revoked
