"""Users who must have the same permissions at an application, so that one of them is evaluated for all."""

from collections.abc import Collection, Hashable, Iterable

from sso.perm.engine.conditions import named_users
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.permission_state import PermissionState
from sso.perm.stores.user_rows import UserRow


class EqualUsers:
    """Users are equal if they have the same roles and attributes, no own data, and nothing names them by their id."""

    def __init__(self, application_id: int, named: Collection[str]) -> None:
        self._is_possible = application_id != CENTRAL_APPLICATION_ID  # memberships differ
        self._named = named

    def key(self, row: UserRow) -> Hashable | None:
        """Equal users have the same key. Returns None for a user who may differ from all others."""
        own, user = row.own, row.user
        if not self._is_possible or own.public_data or own.private_data or user.user_id in self._named:
            return None
        return own.roles, user.domain, user.tags, user.purchases


def named_by_states(application_id: int, states: Iterable[PermissionState]) -> set[str]:
    """Returns the ids of users that a condition of a role, or a group or its conditions, names."""
    named: set[str] = set()
    for state in states:
        application, home = state.compiled.get(application_id), state.home(application_id)
        for role in application.roles.values() if application else ():
            if role.condition is not None:
                named |= named_users(role.condition)
        for group in home.groups if home else ():
            named |= group.users
            for item in group.conditions:
                named |= named_users(item.condition)
    return named
