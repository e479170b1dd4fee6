"""Membership in groups."""

from collections.abc import Iterable
from typing import NamedTuple

from sso.perm.engine.conditions import Comparison, compare, end_of, holds
from sso.perm.engine.facts import Group, ProjectFacts
from sso.perm.engine.rules import latest_end
from sso.perm.engine.time_windows import When
from sso.perm.engine.user_facts import UserFacts


def is_member(group: Group, user: UserFacts, when: When) -> bool:
    """Returns whether the user was added to the group, or one of its conditions holds."""
    return user.user_id in group.users or any(holds(item.condition, user, when) for item in group.conditions)


def membership_end(group: Group, user: UserFacts, now: int) -> int:
    """Returns when the membership of a member ends by time windows of conditions; 0 if it does not."""
    if not group.windows or user.user_id in group.users:
        return 0
    conditions = (item.condition for item in group.conditions)
    return latest_end(end_of(condition, user, now) for condition in conditions if holds(condition, user, now))


def groups_with_member(project: ProjectFacts, group_ids: Iterable[str], user: UserFacts, when: When) -> frozenset[str]:
    """Returns those of the group ids whose group is in the project and has the user as a member."""
    candidates = frozenset(group_ids)
    return frozenset(group.id for group in project.groups if group.id in candidates and is_member(group, user, when))


class GroupMembership(NamedTuple):
    """Why a user is a member of a group."""

    added: bool
    title: str  # of the condition that holds
    compared: tuple[Comparison, ...]


def explain_membership(group: Group, user: UserFacts, now: int) -> GroupMembership | None:
    """Returns None if the user is not a member."""
    if user.user_id in group.users:
        return GroupMembership(True, "", ())
    for item in group.conditions:
        if holds(item.condition, user, now):
            return GroupMembership(False, item.title, compare(item.condition, user, now))
    return None
