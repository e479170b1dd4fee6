"""Who belongs to a group, and whom a project lets in."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from sso.perm.engine.conditions import Compared, compare, holds
from sso.perm.engine.facts import Group, ProjectFacts, UserFacts


def is_member(group: Group, user: UserFacts) -> bool:
    """Explicitly added, or any of the group's conditions holds."""
    return user.user_id in group.users or any(holds(item.condition, user) for item in group.conditions)


def groups_of(project: ProjectFacts, wanted: Iterable[str], user: UserFacts) -> frozenset[str]:
    """Those of the wanted groups that the user belongs to. A group that is not the project's own has no members."""
    asked = frozenset(wanted)
    return frozenset(group.id for group in project.groups if group.id in asked and is_member(group, user))


class GroupMembership(NamedTuple):
    """Why somebody is in a group, for people who ask."""

    added: bool
    title: str  # of the condition that holds
    compared: tuple[Compared, ...]


def belonging(group: Group, user: UserFacts) -> GroupMembership | None:
    if user.user_id in group.users:
        return GroupMembership(True, "", ())
    for item in group.conditions:
        if holds(item.condition, user):
            return GroupMembership(False, item.title, compare(item.condition, user))
    return None


class ProjectExclusion(Enum):
    """Why a project gives a user nothing, whatever roles the user has there."""

    REMOVED = "the project is removed"
    DOMAIN = "the login domain is not among allowed_domains"
    DISALLOW = "the user is in a group of the disallow list"
    ALLOW = "the user is in no group of the allow list"


def closed(project: ProjectFacts, user: UserFacts) -> ProjectExclusion | None:
    """None: the user has access through the project, memberships and grants alike."""
    if project.removed:
        return ProjectExclusion.REMOVED
    if project.allowed_domains and user.domain not in project.allowed_domains:
        return ProjectExclusion.DOMAIN
    if project.disallow and groups_of(project, project.disallow, user):
        return ProjectExclusion.DISALLOW
    if project.allow and not groups_of(project, project.allow, user):
        return ProjectExclusion.ALLOW
    return None
