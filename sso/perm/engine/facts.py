"""What is known about one user, for one evaluation. A store loads it in one or two statements.

What belongs to an application alone (schema and roles) is not here: it is compiled and kept under the application's
version (see `compiled`). Moments are Unix seconds, and 0 means "never ends", as on the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sso.core.net import Address
from sso.perm.engine.conditions import Condition
from sso.perm.names import login_domain, project_key


@dataclass(frozen=True)
class UserFacts:
    """Everything that a condition can ask about."""

    user_id: str
    domain: str = ""  # see `login_domain`
    tags: frozenset[str] = frozenset()
    purchases: frozenset[str] = frozenset()
    address: Address | None = None  # of this request; none: no ip condition holds

    @classmethod
    def of(
        cls,
        user_id: str,
        login: str,
        tags: tuple[str, ...] = (),
        purchases: tuple[str, ...] = (),
        address: Address | None = None,
    ) -> "UserFacts":
        return cls(user_id, login_domain(login), frozenset(tags), frozenset(purchases), address)


@dataclass(frozen=True)
class Assignment:
    """A role given to a user. ``ttl`` counts from each evaluation and takes precedence over ``expired`` (§2.7)."""

    name: str
    expired: int = 0
    ttl: int = 0

    def ended(self, now: int) -> bool:
        """At the very second too: a list that says "0 seconds left" would say "no expiration"."""
        return not self.ttl and 0 < self.expired <= now

    def ends(self, now: int) -> int:
        return now + self.ttl if self.ttl else self.expired


@dataclass(frozen=True)
class OwnRecord:
    """The user's own record for an application, as stored: trees of entries ``{value, params, expired}``."""

    roles: tuple[Assignment, ...] = ()
    public_data: Mapping[str, Any] = field(default_factory=dict)
    private_data: Mapping[str, Any] = field(default_factory=dict)
    secret_data: Mapping[str, Any] = field(default_factory=dict)
    login: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupCondition:
    title: str
    condition: Condition


@dataclass(frozen=True)
class Group:
    id: str
    users: frozenset[str] = frozenset()  # a store may leave out everybody but the user in question
    conditions: tuple[GroupCondition, ...] = ()
    tags: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class GroupAction:
    """One item of ``settings.services[application].groups``."""

    group_id: str
    role: str
    action: str  # grant, revoke


@dataclass(frozen=True)
class ProjectApplication:
    id: int
    name: str = ""
    removed: bool = False
    is_service: bool = False  # it has service_meta


@dataclass(frozen=True)
class Membership:
    """The roles of the user in a project: generic roles of the central application, per level and resource."""

    project: tuple[Assignment, ...] = ()
    applications: Mapping[int, tuple[Assignment, ...]] = field(default_factory=dict)
    services: Mapping[int, tuple[Assignment, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[Assignment, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ProjectFacts:
    """A project with what belongs to it. Groups and applications of another project have no place here."""

    id: str
    title: str = ""
    aliases: tuple[str, ...] = ()
    removed: bool = False
    allowed_domains: frozenset[str] = frozenset()  # as `domain_key` gives them
    services: Mapping[int, tuple[GroupAction, ...]] = field(default_factory=dict)
    allow: tuple[str, ...] = ()  # group ids
    disallow: tuple[str, ...] = ()
    applications: tuple[ProjectApplication, ...] = ()
    groups: tuple[Group, ...] = ()
    membership: Membership = Membership()

    def is_named(self, name: str) -> bool:
        """Whether this is its id or one of its aliases, in whatever spelling."""
        return project_key(name) in map(project_key, (self.id, *self.aliases))


@dataclass(frozen=True)
class PermissionFacts:
    """One user and one application."""

    user: UserFacts
    own: OwnRecord = OwnRecord()
    removed: bool = False  # the application is
    home: ProjectFacts | None = None  # the project of the application, for grants and revokes
    projects: tuple[ProjectFacts, ...] = ()  # where the user is a member; for the central application only
