"""The facts that permissions are computed from: one user, one application, and the projects that connect them.

A store loads them with one or two statements. The application's schema and roles are not part of the facts: they are
compiled once per version (see `compiled_application`). Times are Unix seconds, and 0 means "never ends".
"""

from collections.abc import Mapping

from msgspec import Struct, field

from sso.core.ban import Ban, ban_in_force
from sso.perm.engine.conditions import Condition
from sso.perm.engine.records import NO_RECORD, Assignment, OwnRecord
from sso.perm.engine.reserved_names import project_key
from sso.perm.engine.time_windows import TimeWindow
from sso.perm.engine.user_facts import UserFacts


class GroupCondition(Struct, frozen=True):
    title: str
    condition: Condition


class Group(Struct, frozen=True):
    id: str
    users: frozenset[str] = frozenset()  # a store may leave out all users but the one in question
    conditions: tuple[GroupCondition, ...] = ()
    tags: tuple[str, ...] = ()
    title: str = ""
    windows: tuple[TimeWindow, ...] = ()  # of all conditions


class GroupAction(Struct, frozen=True):
    """One item of ``settings.services[application].groups``: a role granted to a group, or revoked from it."""

    group_id: str
    role: str
    action: str  # grant, revoke


class ProjectApplication(Struct, frozen=True):
    id: int
    name: str = ""
    removed: bool = False
    is_service: bool = False  # it has service_meta


class Membership(Struct, frozen=True):
    """The user's roles in a project: generic roles of the central application, by level and resource."""

    project: tuple[Assignment, ...] = ()
    applications: Mapping[int, tuple[Assignment, ...]] = field(default_factory=dict)
    services: Mapping[int, tuple[Assignment, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[Assignment, ...]] = field(default_factory=dict)


class ProjectFacts(Struct, frozen=True):
    """A project with the applications and groups that belong to it, and the user's membership in it."""

    id: str
    title: str = ""
    aliases: tuple[str, ...] = ()
    removed: bool = False
    allowed_domains: frozenset[str] = frozenset()  # in the form of `domain_key`
    services: Mapping[int, tuple[GroupAction, ...]] = field(default_factory=dict)
    allow: tuple[str, ...] = ()  # group ids
    disallow: tuple[str, ...] = ()
    applications: tuple[ProjectApplication, ...] = ()
    groups: tuple[Group, ...] = ()
    membership: Membership = Membership()

    def is_named(self, name: str) -> bool:
        """Returns whether ``name`` is the id of the project or one of its aliases, in any spelling."""
        return project_key(name) in map(project_key, (self.id, *self.aliases))


class PermissionFacts(Struct, frozen=True):
    """One user and one application."""

    user: UserFacts
    own: OwnRecord = NO_RECORD
    removed: bool = False  # whether the application is removed
    home: ProjectFacts | None = None  # the project of the application, which may grant and revoke its roles
    projects: tuple[ProjectFacts, ...] = ()  # where the user is a member; loaded for the central application only
    bans: tuple[Ban, ...] = ()  # of the user, of all scopes

    def ban(self, application_id: int, now: int) -> Ban | None:
        """Returns the ban of the user at the application."""
        return ban_in_force(self.bans, now, (application_id,), (self.home.id,) if self.home else ())
