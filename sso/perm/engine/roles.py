"""Which roles of an application are effective for a user, and by what.

Assigned, default, by condition, granted to a group through the project of the application. A condition is never
overridden, except on a default role, where it is ignored; a revoke removes everything but a default role.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sso.perm.engine.compiled import Application, Role
from sso.perm.engine.facts import GroupAction, PermissionFacts
from sso.perm.engine.groups import closed, groups_of
from sso.perm.engine.rules import longest

ASSIGNMENT, DEFAULT, CONDITION, GROUP = "assignment", "default", "condition", "group"


class Origin(NamedTuple):
    """One way in which a user came by a role."""

    kind: str
    ends: int = 0
    project_id: str = ""
    group_id: str = ""


@dataclass(frozen=True)
class HeldRole:
    name: str
    origins: tuple[Origin, ...]

    @property
    def ends(self) -> int:
        return longest(origin.ends for origin in self.origins)


@dataclass(frozen=True)
class HeldRoles:
    effective: Mapping[str, HeldRole]  # in the order of their names
    named: frozenset[str]  # assigned or granted, whether or not their condition holds
    holding: frozenset[str]  # of all roles with a condition, those whose condition holds
    revoked: frozenset[str]


def held_roles(application: Application, facts: PermissionFacts, now: int) -> HeldRoles:
    holding = application.index.find(facts.user)
    granted, revoked = _granted_and_revoked(application, facts)
    named: set[str] = set()
    origins: dict[str, list[Origin]] = {role.name: [Origin(DEFAULT)] for role in application.defaults}

    def give(role: Role, origin: Origin) -> None:
        named.add(role.name)
        if applies(role, holding):
            origins.setdefault(role.name, []).append(origin)

    for assignment in facts.own.roles:
        role = application.roles.get(assignment.name)
        if role is not None and not assignment.ended(now) and role.name not in revoked:
            give(role, Origin(ASSIGNMENT, assignment.ends(now)))
    for name in holding - revoked:
        origins.setdefault(name, []).append(Origin(CONDITION))
    for action in granted:
        if action.role not in revoked:
            assert facts.home is not None
            give(application.roles[action.role], Origin(GROUP, 0, facts.home.id, action.group_id))
    effective = {name: HeldRole(name, tuple(origins[name])) for name in sorted(origins)}
    return HeldRoles(effective, frozenset(named), holding, revoked)


def applies(role: Role, holding: frozenset[str]) -> bool:
    """Whether a role works for somebody who has been given it."""
    return role.condition is None or role.is_default or role.name in holding


def through_a_project(role: Role, *, generic: bool) -> bool:
    """Protected roles never come through a project; nor, where roles are generic, those that reach beyond one."""
    return not role.protected and not (generic and role.holds_root_rules)


def actions_of(application: Application, facts: PermissionFacts) -> tuple[GroupAction, ...]:
    """Everything that the project of the application says about its roles."""
    return facts.home.services.get(application.application_id, ()) if facts.home else ()


def _granted_and_revoked(application: Application, facts: PermissionFacts) -> tuple[list[GroupAction], frozenset[str]]:
    """A grant needs access through the project. A revoke holds for whom the project lets in no further, too."""
    actions = actions_of(application, facts)
    if not actions or facts.home is None:
        return [], frozenset()
    mine = groups_of(facts.home, (action.group_id for action in actions), facts.user)
    reaching = [action for action in actions if action.group_id in mine and action.role in application.roles]
    revoked = frozenset(
        action.role
        for action in reaching
        if action.action == "revoke" and not application.roles[action.role].is_default
    )
    granted = [
        action
        for action in reaching
        if action.action == "grant" and through_a_project(application.roles[action.role], generic=False)
    ]
    return ([] if granted and closed(facts.home, facts.user) else granted), revoked
