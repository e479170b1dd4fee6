"""Section ``groups``: records by group id."""

from typing import Any

from msgspec import Struct

from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError, FieldPath
from sso.db.transaction import Row, Transaction
from sso.perm.engine.reserved_names import PROJECT_TAG
from sso.perm.input.groups import GroupRecord, read_group_changes
from sso.perm.stores.groups import change_group, create_group, group_json, read_all_groups, read_group
from sso.perm.stores.locks import lock_project
from sso.perm.stores.projects import read_project
from sso.state.location import UniqueKeys, read_records
from sso.state.summary import CREATED, ApplySummary

SECTION = "groups"
FIELDS = frozenset(GroupRecord.model_fields)


class GroupPart(Struct, frozen=True):
    location: FieldPath
    id: str
    project_id: str | None
    fields: dict[str, Any]


def read(value: object, warnings: list[str]) -> list[GroupPart]:
    parts = []
    unique = UniqueKeys()
    for location, item in read_records((SECTION,), value, FIELDS):
        fields, more = read_group_changes(item, location, GroupRecord)
        warnings += more
        part = GroupPart(location, fields.pop("group_id"), fields.pop("project_id", None), fields)
        unique.add((*location, "group_id"), part.id)
        parts.append(part)
    return parts


async def apply(tx: Transaction, actor: AuditActor, summary: ApplySummary, parts: list[GroupPart]) -> None:
    for part in parts:
        with summary.at(part.location):
            old = await read_group(tx, part.id)
            await _check_project(tx, part, old)
            if old is None:
                if "title" not in part.fields:
                    raise FieldError(("title",), "is required")
                assert part.project_id is not None
                await create_group(tx, actor, part.project_id, part.id, part.fields)
                summary.record(part.location, CREATED)
                continue
            stored = group_json(old)
            changes = {name: value for name, value in part.fields.items() if value != stored[name]}
            at_once = {name: value for name, value in changes.items() if name != "tags" or PROJECT_TAG in value}
            await change_group(tx, actor, old, at_once)
            summary.record_change(part.location, changed=bool(changes))


async def remove_tags(tx: Transaction, actor: AuditActor, summary: ApplySummary, parts: list[GroupPart]) -> None:
    """Takes the tag ``project`` from groups. The lists of their projects must not name them any more."""
    for part in parts:
        tags = part.fields.get("tags")
        if tags is None or PROJECT_TAG in tags:
            continue
        with summary.at(part.location):
            old = await read_group(tx, part.id)
            assert old is not None
            if tags != list(old["tags"]):
                await change_group(tx, actor, old, {"tags": tags})


async def _check_project(tx: Transaction, part: GroupPart, old: Row | None) -> None:
    """Locks the project of the group. Raises an error if it does not exist, is removed or is not the group's."""
    project_id = part.project_id or (old["project_id"] if old else None)
    if project_id is None:
        raise FieldError(("project_id",), "is required")
    if old is not None and project_id != old["project_id"]:
        raise FieldError(("project_id",), "a group cannot move to another project")
    if await read_project(tx, project_id) is None:
        raise FieldError(("project_id",), "there is no such project")
    if (await lock_project(tx, project_id))["removed"]:
        raise Forbidden("removed")


async def export(tx: Transaction) -> list[dict[str, Any]]:
    exported = [group_json(row) for row in await read_all_groups(tx)]
    return [{"group_id": group.pop("id"), **group} for group in exported]
