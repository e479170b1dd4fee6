"""References between records: the resources of a project and the roles of an application that a record may name.

Stores use these checks as well. This module does without pydantic, so that commands that only read start fast.
"""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, field

from sso.core.field_errors import FieldError, FieldPath
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.records import Assignment
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID


class ProjectResources(Struct, frozen=True):
    """The resources of a project. Its settings and memberships may name no others."""

    applications: frozenset[int] = frozenset()  # not removed
    services: frozenset[int] = frozenset()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # with their tags

    @classmethod
    def of(cls, project: ProjectFacts) -> "ProjectResources":
        applications = [item for item in project.applications if not item.removed and item.id != CENTRAL_APPLICATION_ID]
        return cls(
            frozenset(item.id for item in applications),
            frozenset(item.id for item in applications if item.is_service),
            {group.id: group.tags for group in project.groups},
        )


def check_services(
    services: Mapping[str, Any],
    resources: ProjectResources,
    applications: Mapping[int, CompiledApplication],
    path: FieldPath = ("settings", "services"),
) -> None:
    """Raises FieldError if an application or group is not the project's own, a role does not exist, or a protected
    role is granted."""
    for key, service in services.items():
        if int(key) not in resources.applications:
            raise FieldError((*path, key), "is no application of this project")
        roles = applications[int(key)].roles
        for index, action in enumerate(service["groups"]):
            action_path = (*path, key, "groups", index)
            if action["group_id"] not in resources.groups:
                raise FieldError((*action_path, "group_id"), "is no group of this project")
            role = roles.get(action["role"])
            if role is None:
                raise FieldError((*action_path, "role"), f"there is no role {action['role']}")
            if action["action"] == "grant" and not assignable_through_project(role, generic=False):
                raise FieldError((*action_path, "role"), "a protected role cannot be granted through a project")


def check_roles_exist(
    assignments: Collection[Assignment], roles: Collection[str], path: FieldPath = ("roles",)
) -> None:
    """Raises FieldError if a role is not among ``roles``."""
    for index, assignment in enumerate(assignments):
        if assignment.name not in roles:
            raise FieldError((*path, index), f"there is no role {assignment.name}")


def encode_assignments(assignments: Collection[Assignment]) -> list[dict[str, Any]]:
    """Assignments as they are stored: without limits that are not set."""
    return [_encode_assignment(assignment) for assignment in assignments]


def _encode_assignment(assignment: Assignment) -> dict[str, Any]:
    limits = {"expired": assignment.expired, "ttl": assignment.ttl}
    return {"name": assignment.name, **{name: value for name, value in limits.items() if value}}
