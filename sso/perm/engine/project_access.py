"""Project access: the rules that a user's membership gives in a project and in its applications, services and groups.

A generic role of the central application, assigned at project level, covers everything in the project. Assigned at one
application, service or group, it covers only that resource, with its rules for that level.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.held_roles import assignable_through_project, condition_end, role_applies
from sso.perm.engine.project_exclusion import project_exclusion
from sso.perm.engine.records import Assignment
from sso.perm.engine.rules import RuleSource, earliest_end, latest_end
from sso.perm.engine.user_facts import UserFacts

PROJECT_LEVEL = "project"


class MembershipRole(Struct, frozen=True):
    """A role that a membership gives at one scope."""

    name: str
    level: str
    resource: str  # an application or group id; empty at project level
    ends: int
    applies: bool  # whether its condition holds
    window_end: int = 0  # when its condition ends by a time window; 0: never

    @property
    def scope_suffix(self) -> str:
        """The scope within the full name of the role, such as ``.applications.10``."""
        return f".{self.level}.{self.resource}" if self.resource else ""


class AccessScope(Struct, frozen=True):
    """A project or one resource of it, with the rules that the user has there (``app.can_manage_app_api_keys``)."""

    level: str
    resource: str
    rules: Mapping[str, tuple[RuleSource, ...]]


class ProjectAccess(Struct, frozen=True, dict=True):
    project: ProjectFacts
    roles: tuple[MembershipRole, ...]
    scopes: tuple[AccessScope, ...]

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], AccessScope]:
        return {(scope.level, scope.resource): scope for scope in self.scopes}

    def scope(self, level: str, resource: str = "") -> AccessScope | None:
        return self._by_place.get((level, resource))


def compute_project_access(
    application: CompiledApplication, project: ProjectFacts, user: UserFacts, met_conditions: frozenset[str], now: int
) -> ProjectAccess | None:
    """Returns None if the project excludes the user or the membership gives no role."""
    if project_exclusion(project, user, now):
        return None
    roles = tuple(_membership_roles(application, project, user, met_conditions, now))
    if not roles:
        return None
    roles_by_scope: dict[tuple[str, str], list[MembershipRole]] = {}
    for role in roles:
        if role.applies:
            roles_by_scope.setdefault((role.level, role.resource), []).append(role)
    project_roles = roles_by_scope.get((PROJECT_LEVEL, ""), [])
    scopes = []
    for level, resource in project_scopes(project):
        if level == PROJECT_LEVEL:
            scope_roles = project_roles
        else:
            scope_roles = project_roles + roles_by_scope.get((level, resource), [])
        if scope_roles and (rules := _rules(application, level, scope_roles)):
            scopes.append(AccessScope(level, resource, rules))
    return ProjectAccess(project, roles, tuple(scopes))


def project_scopes(project: ProjectFacts) -> Iterator[tuple[str, str]]:
    """Level and resource of every scope of a project: itself, its applications, its services, its groups."""
    yield PROJECT_LEVEL, ""
    applications = [application for application in project.applications if not application.removed]
    for application in applications:
        yield "applications", str(application.id)
    for application in applications:
        if application.is_service:
            yield "services", str(application.id)
    for group in project.groups:
        yield "groups", group.id


def membership_assignments(project: ProjectFacts) -> Iterator[tuple[str, str, Assignment]]:
    """Level, resource and assignment of every role in the user's membership."""
    membership = project.membership
    for assignment in membership.project:
        yield PROJECT_LEVEL, "", assignment
    for level in ("applications", "services", "groups"):
        for resource, assignments in getattr(membership, level).items():
            for assignment in assignments:
                yield level, str(resource), assignment


def _membership_roles(
    application: CompiledApplication, project: ProjectFacts, user: UserFacts, met_conditions: frozenset[str], now: int
) -> Iterator[MembershipRole]:
    scopes = frozenset(project_scopes(project))
    for level, resource, assignment in membership_assignments(project):
        role = application.roles.get(assignment.name)
        if (
            role is not None
            and not assignment.ended(now)
            and assignable_through_project(role, generic=True)
            and (level, resource) in scopes
        ):
            applies = role_applies(role, met_conditions)
            window_end = condition_end(role, user, now) if applies else 0
            ends = earliest_end((assignment.ends(now), window_end)) if window_end else assignment.ends(now)
            yield MembershipRole(role.name, level, resource, ends, applies, window_end)


def _rules(
    application: CompiledApplication, level: str, roles: list[MembershipRole]
) -> dict[str, tuple[RuleSource, ...]]:
    """Returns the rules that these roles give at one scope.

    A true value wins over a false one, so false ones are dropped.
    """
    ends: dict[str, int] = {}
    for role in roles:
        ends[role.name] = latest_end((ends[role.name], role.ends)) if role.name in ends else role.ends
    sources: dict[str, tuple[RuleSource, ...]] = {}
    for name in sorted(ends):
        for rule in application.roles[name].rules_by_level[level]:
            if rule.listed:
                source = rule.source._replace(ends=ends[name]) if ends[name] else rule.source
                sources[rule.path] = (*sources.get(rule.path, ()), source)
    return sources
