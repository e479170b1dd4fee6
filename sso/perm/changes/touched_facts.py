"""Finds what a copy of the facts must read again after a write, whether or not the permissions of a user changed.

A role that a user has twice, or an entry that ends later, changes nothing now, but it does at another moment.
"""

from collections.abc import Iterable, Mapping

from sso.perm.changes.impact import PermissionChange
from sso.perm.changes.scope import Scope
from sso.perm.engine.facts import ProjectFacts
from sso.perm.stores.permission_state import PermissionState

_NO_USERS: frozenset[str] = frozenset()


def find_touched(
    scope: Scope,
    before: PermissionState,
    after: PermissionState,
    explicit: Mapping[int, set[str]],
    changes: Iterable[PermissionChange],
) -> dict[int, set[str]]:
    """Returns the applications that the write may have changed, each with the users whose facts may have changed
    without a change of their permissions.

    ``explicit`` has the users whose records or attributes the write may have changed. ``changes`` are those that have
    an event of their own.
    """
    touched = {application_id: set(user_ids) for application_id, user_ids in explicit.items()}
    defined = set()  # applications of which a row, or the project, is in the scope
    moved: dict[tuple[str | None, ...], set[str]] = {}  # by the projects before and after the write
    for application_id in after.applications:
        homes = before.home(application_id), after.home(application_id)
        if application_id in scope.applications or any(home and home.id in scope.projects for home in homes):
            defined.add(application_id)
            key = tuple(home.id if home else None for home in homes)
            if key not in moved:
                moved[key] = _moved_users(*homes)
            touched.setdefault(application_id, set()).update(moved[key])
    for change in changes:
        if change.application_id in touched:
            touched[change.application_id].discard(change.user_id)
    return {key: user_ids for key, user_ids in touched.items() if user_ids or key in defined}


def _moved_users(before: ProjectFacts | None, after: ProjectFacts | None) -> set[str]:
    """Returns the users who have joined or left a group."""
    old, new = _members(before), _members(after)
    moved = (old.get(group_id, _NO_USERS) ^ new.get(group_id, _NO_USERS) for group_id in old.keys() | new.keys())
    return set[str]().union(*moved)


def _members(project: ProjectFacts | None) -> dict[str, frozenset[str]]:
    return {group.id: group.users for group in project.groups} if project else {}
