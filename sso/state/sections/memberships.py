"""Section ``memberships``: records by project id, together with the ``admins`` of the section ``projects``.

A list of users replaces the stored one. Users that ``admins`` names in the same document remain administrators.
"""

from typing import Any

from msgspec import Struct

from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError, FieldPath, field_text
from sso.db.transaction import Transaction
from sso.perm.input.membership import FIELDS
from sso.perm.input.names import read_segment
from sso.perm.stores.builtin_roles import ADMIN_ROLE
from sso.perm.stores.memberships import read_membership, save_membership
from sso.perm.stores.projects import read_project
from sso.perm.stores.record_lists import list_projects
from sso.state.location import UniqueKeys, read_records
from sso.state.sections.projects import ProjectPart
from sso.state.summary import ApplySummary

SECTION = "memberships"


class MembershipPart(Struct, frozen=True):
    location: FieldPath
    id: str
    data: dict[str, Any]


def read(value: object) -> list[MembershipPart]:
    parts = []
    unique = UniqueKeys()
    for location, item in read_records((SECTION,), value, FIELDS):
        if "id" not in item:
            raise FieldError((*location, "id"), "is required")
        project_id = read_segment(item["id"], (*location, "id"))
        unique.add((*location, "id"), project_id)
        parts.append(MembershipPart(location, project_id, item))
    return parts


async def apply(
    tx: Transaction,
    actor: AuditActor,
    summary: ApplySummary,
    parts: list[MembershipPart],
    projects: list[ProjectPart],
    admins: dict[str, list[str]],
) -> None:
    named = {part.id for part in parts}
    others = [MembershipPart(p.location, p.id, {}) for p in projects if p.id not in named and admins[p.id]]
    for part in [*parts, *others]:
        with summary.at(part.location):
            project = await read_project(tx, part.id)
            if project is None:
                raise FieldError(("id",), "there is no such project")
            if project["removed"]:
                raise Forbidden("removed")
            before = await read_membership(tx, part.id)
            data = part.data
            if admins.get(part.id):
                data = data | {"users": with_admins(data.get("users", before["users"]), admins[part.id])}
            after, warnings = await save_membership(tx, actor, part.id, data)
            summary.warnings += [f"{field_text(part.location)}.{warning}" for warning in warnings]
            summary.record_change(part.location, changed=after != before)


def with_admins(users: Any, admins: list[str]) -> Any:
    """Returns the users with the administrators added. Returns a value that is not a list unchanged."""
    if not isinstance(users, list):
        return users
    result = list(users)
    for admin in admins:
        index = next(
            (n for n, user in enumerate(result) if isinstance(user, dict) and user.get("user_id") == admin), None
        )
        if index is None:
            result.append({"user_id": admin, "roles": {"project": [ADMIN_ROLE]}})
            continue
        roles = result[index].get("roles", {})
        assigned = roles.get("project", []) if isinstance(roles, dict) else None
        if isinstance(assigned, list) and not any(_role_name(role) == ADMIN_ROLE for role in assigned):
            result[index] = result[index] | {"roles": roles | {"project": [*assigned, ADMIN_ROLE]}}
    return result


def _role_name(role: Any) -> Any:
    return role.get("name") if isinstance(role, dict) else role


async def export(tx: Transaction) -> list[dict[str, Any]]:
    return [await read_membership(tx, row["id"]) for row in await list_projects(tx)]
