"""Reads the membership of a project: users with their roles, and the allow and disallow lists (§4.6)."""

from typing import Any, NamedTuple

from sso.core.ids import is_user_id
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.records import Assignment
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import read_group_id
from sso.perm.input.project import ProjectResources, read_member_roles

MAX_MEMBERS = 10_000
FIELDS = frozenset(("id", "users", "allow", "disallow"))
LEVELS = ("applications", "services", "groups")  # below the project itself
_MEMBER_FIELDS = frozenset(("user_id", "roles"))


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
    """Refuse what is wrong whatever the project is. `read_members` and `read_group_list` check the rest."""
    for index, item in enumerate(validators.an_array(data.get("users", []), "users", MAX_MEMBERS)):
        member = validators.an_object(item, f"users[{index}]")
        validators.text(member.get("user_id"), f"users[{index}].user_id", 64)
        validators.an_object(member.get("roles", {}), f"users[{index}].roles")
    for name in ("allow", "disallow"):
        for index, item in enumerate(validators.an_array(data.get(name, []), name)):
            read_group_id(item, f"{name}[{index}]")


def read_members(
    value: object, resources: ProjectResources, central: CompiledApplication
) -> tuple[list[MemberRole], list[str]]:
    """The roles of all members, and warnings. Applications and groups must belong to the project."""
    member_roles: list[MemberRole] = []
    warnings: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(validators.an_array(value, "users", MAX_MEMBERS)):
        where = f"users[{index}]"
        member = validators.an_object(item, where)
        warnings += validators.unknown(member, _MEMBER_FIELDS, where)
        user_id = member.get("user_id")
        if not isinstance(user_id, str) or not is_user_id(user_id):
            raise InvalidInput(f"{where}.user_id: must be a user id")
        if user_id in seen:
            raise InvalidInput(f"{where}.user_id: stands twice")
        seen.add(user_id)
        roles, more = read_member_roles(member.get("roles", {}), resources, central, f"{where}.roles")
        warnings += more
        member_roles += [_member_role(user_id, "project", "", role) for role in roles.get("project", ())]
        for level in LEVELS:
            for resource, items in roles.get(level, {}).items():
                member_roles += [_member_role(user_id, level, resource, role) for role in items]
    return member_roles, warnings


def _member_role(user_id: str, level: str, resource: str, role: dict[str, Any]) -> MemberRole:
    return MemberRole(user_id, level, resource, role["name"], role.get("expired", 0), role.get("ttl", 0))
