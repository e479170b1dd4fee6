"""The records that permissions are computed from, as they are stored."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field


class Assignment(Struct, frozen=True):
    """A role assigned to a user. ``ttl`` counts from each evaluation and takes precedence over ``expired`` (§2.7)."""

    name: str
    expired: int = 0
    ttl: int = 0

    def ended(self, now: int) -> bool:
        """An assignment ends at the second ``expired``: "0 seconds left" would be rendered as "never ends"."""
        return not self.ttl and 0 < self.expired <= now

    def ends(self, now: int) -> int:
        """When the assignment ends, in Unix time; 0 if it never ends."""
        return now + self.ttl if self.ttl else self.expired


class Schema(Struct, frozen=True):
    """The schema of an application (§2.8): one tree of rules for each section."""

    public_data: Mapping[str, Any] = field(default_factory=dict)
    private_data: Mapping[str, Any] = field(default_factory=dict)
    secret_data: Mapping[str, Any] = field(default_factory=dict)
    login: Mapping[str, Any] = field(default_factory=dict)


class RoleRecord(Struct, frozen=True):
    """A role of an application (§2.7)."""

    name: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    protected: bool = False
    default: bool = False
    condition: Mapping[str, Any] = field(default_factory=dict)
    user_limit: int = 0
    params: str = ""


class OwnRecord(Struct, frozen=True):
    """A user's own record for an application (§2.9): assigned roles, and trees of entries
    ``{value, params, expired}``."""

    roles: tuple[Assignment, ...] = ()
    public_data: Mapping[str, Any] = field(default_factory=dict)
    private_data: Mapping[str, Any] = field(default_factory=dict)
    secret_data: Mapping[str, Any] = field(default_factory=dict)
    login: Mapping[str, Any] = field(default_factory=dict)


NO_RECORD = OwnRecord()
