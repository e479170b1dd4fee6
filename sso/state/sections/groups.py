"""``groups``, by their ids."""

from dataclasses import dataclass
from typing import Any

from sso.core.errors import Forbidden
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.perm.errors import InvalidInput
from sso.perm.groups import create_group, read_group, save_group, set_access, set_tags, shown
from sso.perm.input import validators
from sso.perm.input.groups import read_group_conditions, read_group_users
from sso.perm.input.names import read_group_id, read_segment, read_title
from sso.perm.input.tags import read_tags
from sso.perm.projects import read_row
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.project_state import lock_project
from sso.state.location import UniqueKeys, joined, records, said_at
from sso.state.summary import CREATED, ApplySummary

SECTION = "groups"
FIELDS = frozenset(("group_id", "project_id", "title", "description", "users", "conditions", "tags"))

_ALL = Statement(
    """SELECT g.*, ARRAY(SELECT user_id FROM group_users u WHERE u.group_id = g.id ORDER BY position) AS users
    FROM user_groups g JOIN projects p ON p.id = g.project_id AND NOT p.removed ORDER BY g.created, g.id"""
)


@dataclass(frozen=True)
class GroupPart:
    place: str
    id: str
    project_id: str | None
    given: dict[str, Any]


def read(value: object, warnings: list[str]) -> list[GroupPart]:
    found = []
    once = UniqueKeys()
    for place, item in records(SECTION, value, FIELDS):
        with said_at(place):
            part, more = _read(place, item)
        once(f"{place}.group_id", part.id)
        found.append(part)
        warnings += [joined(place, warning) for warning in more]
    return found


def _read(place: str, item: dict[str, Any]) -> tuple[GroupPart, list[str]]:
    given: dict[str, Any] = {}
    warnings: list[str] = []
    wanted = read_group_id(item.get("group_id"), "group_id")
    project_id = read_segment(item["project_id"], "project_id") if "project_id" in item else None
    if "title" in item:
        given["title"] = read_title(item["title"], "title")
    if "description" in item:
        given["description"] = validators.read_text(item["description"] or "", "description")
    if "users" in item:
        given["users"] = read_group_users(item["users"])
    if "conditions" in item:
        given["conditions"], warnings = read_group_conditions(item["conditions"])
    if "tags" in item:
        given["tags"] = read_tags(item["tags"])
    return GroupPart(place, wanted, project_id, given), warnings


async def apply(tx: Transaction, actor: AuditActor, tally: ApplySummary, parts: list[GroupPart]) -> None:
    for part in parts:
        with tally.at(part.place):
            old = await read_group(tx, part.id)
            await _check_project(tx, part, old)
            if old is None:
                if "title" not in part.given:
                    raise InvalidInput("title: is required")
                assert part.project_id is not None
                await create_group(tx, actor, part.project_id, part.id, part.given)
                tally.note(part.place, CREATED)
                continue
            now = shown(old)
            changes = {name: value for name, value in part.given.items() if value != now[name]}
            await _save(tx, actor, old, changes)
            tally.changed(part.place, changed=bool(changes))


async def _check_project(tx: Transaction, part: GroupPart, old: Row | None) -> None:
    """It is there, not removed, and the group stays in it; locked, as for every change of a group."""
    wanted = part.project_id or (old["project_id"] if old else None)
    if wanted is None:
        raise InvalidInput("project_id: is required")
    if old is not None and wanted != old["project_id"]:
        raise InvalidInput("project_id: a group stays in its project")
    if await read_row(tx, wanted) is None:
        raise InvalidInput("project_id: there is no such project")
    if (await lock_project(tx, wanted))["removed"]:
        raise Forbidden("removed")


async def _save(tx: Transaction, actor: AuditActor, old: Row, changes: dict[str, Any]) -> None:
    row = old
    if changes.keys() & {"title", "description"}:
        row = await save_group(tx, actor, row, changes)
    if "tags" in changes:
        row = await set_tags(tx, actor, row, changes["tags"])
    if changes.keys() & {"users", "conditions"}:
        await set_access(tx, actor, row, changes.get("users"), changes.get("conditions"))


async def export(tx: Transaction) -> list[dict[str, Any]]:
    found = [shown(row) for row in await tx.rows(_ALL)]
    return [{"group_id": group.pop("id"), **group} for group in found]
