"""A project's membership in requests: the roles of its members, and the groups that it allows and disallows."""

from collections.abc import Collection, Mapping
from typing import Any

from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.names import PROJECT_TAG
from sso.perm.errors import InvalidInput
from sso.perm.input.names import read_application_key, read_group_id
from sso.perm.input.project import ProjectResources
from sso.perm.input.roles import encode_assignments, read_assignments
from sso.perm.input.validators import read_array, read_object, unique, unknown_field_warnings

MAX_LISTED_GROUPS = 100

_LEVELS = frozenset(("project", "applications", "services", "groups"))


def read_member_roles(
    value: object, resources: ProjectResources, central: CompiledApplication, where: str = "roles"
) -> tuple[dict[str, Any], list[str]]:
    """One user's roles in a project, ready to store, and warnings.

    The roles are generic roles of the central application, and the resources belong to the project.
    """
    fields = read_object(value, where)
    warnings = unknown_field_warnings(fields, _LEVELS, where)
    resources_by_level: Mapping[str, Collection[Any]] = {
        "applications": resources.applications,
        "services": resources.services,
        "groups": resources.groups,
    }
    roles: dict[str, Any] = {}
    if "project" in fields:
        roles["project"] = _read_generic_roles(fields["project"], central, f"{where}.project", warnings)
    for level, known in resources_by_level.items():
        if level not in fields:
            continue
        level_path = f"{where}.{level}"
        roles[level] = {}
        for key, items in read_object(fields[level], level_path).items():
            resource = read_group_id(key, level_path) if level == "groups" else read_application_key(key, level_path)
            if resource not in known:
                raise InvalidInput(f"{level_path}.{resource}: does not belong to this project")
            path = f"{level_path}.{resource}"
            roles[level][str(resource)] = _read_generic_roles(items, central, path, warnings)
    return roles, warnings


def _read_generic_roles(
    value: object, central: CompiledApplication, where: str, warnings: list[str]
) -> list[dict[str, Any]]:
    assignments, item_warnings = read_assignments(value, central.roles, where=where)
    warnings += item_warnings
    for assignment in assignments:
        role = central.roles[assignment.name]
        if role.protected:
            raise InvalidInput(f"{where}: {role.name} is protected and cannot be assigned through a project")
        if not assignable_through_project(role, generic=True):
            raise InvalidInput(f"{where}: {role.name} holds root rules and cannot be assigned through a project")
    return encode_assignments(assignments)


def read_group_list(value: object, resources: ProjectResources, where: str) -> list[str]:
    """An allow or disallow list: groups of this project that have the tag ``project``."""
    items = read_array(value, where, MAX_LISTED_GROUPS)
    group_ids = unique(read_group_id(item, f"{where}[{index}]") for index, item in enumerate(items))
    for group_id in group_ids:
        if group_id not in resources.groups:
            raise InvalidInput(f"{where}: {group_id} is no group of this project")
        if PROJECT_TAG not in resources.groups[group_id]:
            raise InvalidInput(f"{where}: {group_id} lacks the tag {PROJECT_TAG}")
    return group_ids
