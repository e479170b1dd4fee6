"""``memberships``, by the ids of their projects, together with the ``admins`` that the projects ask for.

A list that is given replaces the old one, as in a save. Whoever the same document names as an administrator of the
project stays one all the same.
"""

from dataclasses import dataclass
from typing import Any

from sso.core.errors import Forbidden
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.errors import InvalidInput
from sso.perm.input.names import read_segment
from sso.perm.membership import KNOWN, read_membership, save_membership
from sso.perm.projects import read_row
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.builtin_roles import ADMIN_ROLE
from sso.state.location import UniqueKeys, joined, records, said_at
from sso.state.sections.projects import ProjectPart
from sso.state.summary import ApplySummary

SECTION = "memberships"

_ALL = Statement("SELECT id FROM projects WHERE NOT removed ORDER BY created, id")


@dataclass(frozen=True)
class MembershipPart:
    place: str
    id: str
    data: dict[str, Any]


def read(value: object) -> list[MembershipPart]:
    found = []
    once = UniqueKeys()
    for place, item in records(SECTION, value, KNOWN):
        with said_at(place):
            if "id" not in item:
                raise InvalidInput("id: is required")
            wanted = read_segment(item["id"], "id")
        once(f"{place}.id", wanted)
        found.append(MembershipPart(place, wanted, item))
    return found


async def apply(
    tx: Transaction,
    actor: AuditActor,
    tally: ApplySummary,
    parts: list[MembershipPart],
    projects: list[ProjectPart],
    admins: dict[str, list[str]],
) -> None:
    said = {part.id for part in parts}
    others = [MembershipPart(p.place, p.id, {}) for p in projects if p.id not in said and admins[p.id]]
    for part in [*parts, *others]:
        with tally.at(part.place):
            project = await read_row(tx, part.id)
            if project is None:
                raise InvalidInput("id: there is no such project")
            if project["removed"]:
                raise Forbidden("removed")
            before = await read_membership(tx, part.id)
            data = part.data
            if admins.get(part.id):
                data = data | {"users": with_admins(data.get("users", before["users"]), admins[part.id])}
            warnings: list[str] = []
            after = await save_membership(tx, actor, part.id, data, warnings)
            tally.warnings += [joined(part.place, warning) for warning in warnings]
            tally.changed(part.place, changed=after != before)


def with_admins(users: Any, admins: list[str]) -> Any:
    """The same users, those administrators among them. What is no list of users is left to whoever refuses it."""
    if not isinstance(users, list):
        return users
    found = list(users)
    for admin in admins:
        at = next((n for n, user in enumerate(found) if isinstance(user, dict) and user.get("user_id") == admin), None)
        if at is None:
            found.append({"user_id": admin, "roles": {"project": [ADMIN_ROLE]}})
            continue
        roles = found[at].get("roles", {})
        given = roles.get("project", []) if isinstance(roles, dict) else None
        if isinstance(given, list) and not any(_name(role) == ADMIN_ROLE for role in given):
            found[at] = found[at] | {"roles": roles | {"project": [*given, ADMIN_ROLE]}}
    return found


def _name(role: Any) -> Any:
    return role.get("name") if isinstance(role, dict) else role


async def export(tx: Transaction) -> list[dict[str, Any]]:
    return [await read_membership(tx, row["id"]) for row in await tx.rows(_ALL)]
