"""Membership in groups."""

from collections.abc import Iterable
from typing import NamedTuple

from sso.perm.engine.conditions import Comparison, compare, holds
from sso.perm.engine.facts import Group, ProjectFacts
from sso.perm.engine.user_facts import UserFacts


def is_member(group: Group, user: UserFacts) -> bool:
    """Returns whether the user was added to the group, or one of its conditions holds."""
    return user.user_id in group.users or any(holds(item.condition, user) for item in group.conditions)


def groups_with_member(project: ProjectFacts, group_ids: Iterable[str], user: UserFacts) -> frozenset[str]:
    """Returns those of the group ids whose group is in the project and has the user as a member."""
    candidates = frozenset(group_ids)
    return frozenset(group.id for group in project.groups if group.id in candidates and is_member(group, user))


class GroupMembership(NamedTuple):
    """Why a user is a member of a group."""

    added: bool
    title: str  # of the condition that holds
    compared: tuple[Comparison, ...]


def explain_membership(group: Group, user: UserFacts) -> GroupMembership | None:
    """Returns None if the user is not a member."""
    if user.user_id in group.users:
        return GroupMembership(True, "", ())
    for item in group.conditions:
        if holds(item.condition, user):
            return GroupMembership(False, item.title, compare(item.condition, user))
    return None
