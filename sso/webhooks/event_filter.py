"""The events that a webhook receives: types of events, groups of types, or all."""

from collections.abc import Sequence

from sso.change_stream.events import ChangeType

ALL = "*"
GROUPS: dict[str, frozenset[ChangeType]] = {
    ALL: frozenset(ChangeType),
    "permissions": frozenset({ChangeType.PERMISSIONS_CHANGED, ChangeType.APPLICATION_CHANGED}),
    "users": frozenset(name for name in ChangeType if name.startswith("user_")),
    "keys": frozenset(name for name in ChangeType if "key_" in name or name == ChangeType.CLIENT_SECRET_ROTATED),
}
EVENT_NAMES = (*GROUPS, *ChangeType)


def selected_types(names: Sequence[str]) -> frozenset[str]:
    """Returns the types of events that these names select. No names select all."""
    return frozenset(kind for name in names or (ALL,) for kind in GROUPS.get(name, (name,)))
