"""Project access: what a user's membership gives in a project and in each of its applications, services and groups.

A generic role of the central application, given at project level, reaches everything in the project; given at one
application, service or group it reaches only that one, and only with its rules for that level.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sso.perm.engine.compiled import Application
from sso.perm.engine.facts import Assignment, ProjectFacts, UserFacts
from sso.perm.engine.groups import closed
from sso.perm.engine.roles import applies, through_a_project
from sso.perm.engine.rules import RuleSource, longest

PROJECT = "project"


@dataclass(frozen=True)
class GivenRole:
    """A role that a membership gives, at the place where it is given."""

    name: str
    level: str
    resource: str  # an application or group id; empty at project level
    ends: int
    applies: bool  # its condition holds

    @property
    def at(self) -> str:
        """Its place in the name of a role, such as ``.applications.10``."""
        return f".{self.level}.{self.resource}" if self.resource else ""


@dataclass(frozen=True)
class AccessScope:
    """A project, or one thing in it, with the rules that the user has there (``app.can_manage_app_api_keys``)."""

    level: str
    resource: str
    rules: Mapping[str, tuple[RuleSource, ...]]


@dataclass(frozen=True)
class ProjectAccess:
    project: ProjectFacts
    roles: tuple[GivenRole, ...]
    places: tuple[AccessScope, ...]

    def place(self, level: str, resource: str = "") -> AccessScope | None:
        return next((p for p in self.places if p.level == level and p.resource == resource), None)


def project_access(
    application: Application, project: ProjectFacts, user: UserFacts, holding: frozenset[str], now: int
) -> ProjectAccess | None:
    """None: nothing at all, as if the user were no member."""
    if closed(project, user):
        return None
    roles = tuple(_given(application, project, holding, now))
    if not roles:
        return None
    working = [role for role in roles if role.applies]
    by_place: dict[tuple[str, str], list[GivenRole]] = {}
    for role in working:
        by_place.setdefault((role.level, role.resource), []).append(role)
    whole = by_place.get((PROJECT, ""), [])
    places = []
    for level, resource in resources(project):
        here = whole + by_place.get((level, resource), []) if level != PROJECT else whole
        if here and (rules := _rules(application, level, here)):
            places.append(AccessScope(level, resource, rules))
    return ProjectAccess(project, roles, tuple(places))


def resources(project: ProjectFacts) -> Iterator[tuple[str, str]]:
    """Every place of a project: itself, its applications, those of them that are services, its groups."""
    yield PROJECT, ""
    alive = [application for application in project.applications if not application.removed]
    for application in alive:
        yield "applications", str(application.id)
    for application in alive:
        if application.is_service:
            yield "services", str(application.id)
    for group in project.groups:
        yield "groups", group.id


def assignments(project: ProjectFacts) -> Iterator[tuple[str, str, Assignment]]:
    """Everything a membership says: level, resource, role."""
    membership = project.membership
    for assignment in membership.project:
        yield PROJECT, "", assignment
    for level in ("applications", "services", "groups"):
        for resource, items in getattr(membership, level).items():
            for assignment in items:
                yield level, str(resource), assignment


def _given(application: Application, project: ProjectFacts, holding: frozenset[str], now: int) -> Iterator[GivenRole]:
    existing = frozenset(resources(project))
    for level, resource, assignment in assignments(project):
        role = application.roles.get(assignment.name)
        if (
            role is not None
            and not assignment.ended(now)
            and through_a_project(role, generic=True)
            and (level, resource) in existing
        ):
            yield GivenRole(role.name, level, resource, assignment.ends(now), applies(role, holding))


def _rules(application: Application, level: str, given: list[GivenRole]) -> dict[str, tuple[RuleSource, ...]]:
    """The rules of these roles at one place. A true value beats a false one, so only true ones need to be kept."""
    ends: dict[str, int] = {}
    for role in given:
        ends[role.name] = longest((ends[role.name], role.ends)) if role.name in ends else role.ends
    found: dict[str, tuple[RuleSource, ...]] = {}
    for name in sorted(ends):
        for rule in application.roles[name].by_level[level]:
            if rule.listed:
                source = rule.source._replace(ends=ends[name]) if ends[name] else rule.source
                found[rule.path] = (*found.get(rule.path, ()), source)
    return found
