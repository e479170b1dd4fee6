"""A project's membership in requests (§4.6): its users with their roles, and the allow and disallow lists."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from sso.core.field_errors import FieldError, FieldPath
from sso.core.ids import is_user_id
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.records import Assignment
from sso.perm.engine.reserved_names import PROJECT_TAG
from sso.perm.input.names import read_application_key, read_group_id
from sso.perm.input.references import ProjectResources, check_roles_exist, encode_assignments
from sso.perm.input.validators import read_array, read_object, read_text, unique, unknown_field_warnings

MAX_MEMBERS = 10_000
MAX_LISTED_GROUPS = 100
FIELDS = frozenset(("id", "users", "allow", "disallow"))
LEVELS = ("applications", "services", "groups")  # below the project itself

_MEMBER_FIELDS = frozenset(("user_id", "roles"))
_ROLE_FIELDS = frozenset(("project", *LEVELS))


class MemberRole(NamedTuple):
    """One role of one user in a project: over the whole project, or over one application, service or group."""

    user_id: str
    level: str
    resource: str
    role: str
    expired: int
    ttl: int

    @property
    def assignment(self) -> Assignment:
        return Assignment(self.role, self.expired, self.ttl)


def check_membership_shape(data: dict[str, Any]) -> None:
    """Raises FieldError for what is wrong in any project. `read_members` and `read_group_list` check the rest."""
    for index, item in enumerate(read_array(data.get("users", []), ("users",), MAX_MEMBERS)):
        member = read_object(item, ("users", index))
        read_text(member.get("user_id"), ("users", index, "user_id"), 64)
        read_object(member.get("roles", {}), ("users", index, "roles"))
    for name in ("allow", "disallow"):
        for index, item in enumerate(read_array(data.get(name, []), (name,))):
            read_group_id(item, (name, index))


def read_members(
    value: object, resources: ProjectResources, central: CompiledApplication
) -> tuple[list[MemberRole], list[str]]:
    """The roles of all members, and warnings. Applications and groups must belong to the project."""
    member_roles: list[MemberRole] = []
    warnings: list[str] = []
    user_ids: set[str] = set()
    for index, item in enumerate(read_array(value, ("users",), MAX_MEMBERS)):
        path: FieldPath = ("users", index)
        member = read_object(item, path)
        warnings += unknown_field_warnings(member, _MEMBER_FIELDS, path)
        user_id = member.get("user_id")
        if not isinstance(user_id, str) or not is_user_id(user_id):
            raise FieldError((*path, "user_id"), "must be a user id")
        if user_id in user_ids:
            raise FieldError((*path, "user_id"), "must be listed only once")
        user_ids.add(user_id)
        roles, role_warnings = read_member_roles(member.get("roles", {}), resources, central, (*path, "roles"))
        warnings += role_warnings
        member_roles += [_member_role(user_id, "project", "", role) for role in roles.get("project", ())]
        for level in LEVELS:
            for resource, items in roles.get(level, {}).items():
                member_roles += [_member_role(user_id, level, resource, role) for role in items]
    return member_roles, warnings


def _member_role(user_id: str, level: str, resource: str, role: dict[str, Any]) -> MemberRole:
    return MemberRole(user_id, level, resource, role["name"], role.get("expired", 0), role.get("ttl", 0))


def read_member_roles(
    value: object, resources: ProjectResources, central: CompiledApplication, path: FieldPath = ("roles",)
) -> tuple[dict[str, Any], list[str]]:
    """One user's roles in a project, ready to store, and warnings.

    The roles are generic roles of the central application, and the resources belong to the project.
    """
    fields = read_object(value, path)
    warnings = unknown_field_warnings(fields, _ROLE_FIELDS, path)
    resources_by_level: Mapping[str, Collection[Any]] = {
        "applications": resources.applications,
        "services": resources.services,
        "groups": resources.groups,
    }
    roles: dict[str, Any] = {}
    if "project" in fields:
        roles["project"] = _read_generic_roles(fields["project"], central, (*path, "project"), warnings)
    for level, known in resources_by_level.items():
        if level not in fields:
            continue
        level_path = (*path, level)
        roles[level] = {}
        for key, items in read_object(fields[level], level_path).items():
            resource = read_group_id(key, level_path) if level == "groups" else read_application_key(key, level_path)
            if resource not in known:
                raise FieldError((*level_path, key), "does not belong to this project")
            roles[level][key] = _read_generic_roles(items, central, (*level_path, key), warnings)
    return roles, warnings


def _read_generic_roles(
    value: object, central: CompiledApplication, path: FieldPath, warnings: list[str]
) -> list[dict[str, Any]]:
    from sso.perm.input.roles import read_assignments  # not above: stores import this module, and pydantic is slow

    assignments, item_warnings = read_assignments(value, path=path)
    warnings += item_warnings
    check_roles_exist(assignments, central.roles, path)
    for assignment in assignments:
        role = central.roles[assignment.name]
        if role.protected:
            raise FieldError(path, f"{role.name} is protected and cannot be assigned through a project")
        if not assignable_through_project(role, generic=True):
            raise FieldError(path, f"{role.name} holds root rules and cannot be assigned through a project")
    return encode_assignments(assignments)


def member_role_names(central: CompiledApplication) -> list[str]:
    """The roles that members of projects can have."""
    return [role.name for role in central.roles.values() if assignable_through_project(role, generic=True)]


def read_group_list(value: object, resources: ProjectResources, path: FieldPath) -> list[str]:
    """An allow or disallow list: groups of this project that have the tag ``project``."""
    items = read_array(value, path, MAX_LISTED_GROUPS)
    group_ids = unique(read_group_id(item, (*path, index)) for index, item in enumerate(items))
    for group_id in group_ids:
        if group_id not in resources.groups:
            raise FieldError(path, f"{group_id} is no group of this project")
        if PROJECT_TAG not in resources.groups[group_id]:
            raise FieldError(path, f"{group_id} lacks the tag {PROJECT_TAG}")
    return group_ids
