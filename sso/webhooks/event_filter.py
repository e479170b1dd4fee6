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


# Names that mean the same: the singular of a group, and types with a dot in place of the first underscore.
ALIASES = {"all": ALL, "permission": "permissions", "user": "users", "key": "keys"} | {
    name.replace("_", ".", 1): str(name) for name in ChangeType
}


def event_name(name: str) -> str:
    """Returns the name in EVENT_NAMES. Raises ValueError if there is none."""
    name = ALIASES.get(name, name)
    if name not in EVENT_NAMES:
        raise ValueError(f"must be one of {', '.join(EVENT_NAMES)}")
    return name


def selected_types(names: Sequence[str]) -> frozenset[str]:
    """Returns the types of events that these names select. No names select all."""
    return frozenset(kind for name in names or (ALL,) for kind in GROUPS.get(name, (name,)))
