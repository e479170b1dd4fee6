"""Section ``projects``: records by id.

Projects are created before the records that belong to them; their settings, which may name such records, are applied
afterwards.
"""

from typing import Any

from msgspec import Struct

from sso.accounts.user_directory_store import read_logins
from sso.audit.trail import AuditActor
from sso.core.field_errors import FieldError, FieldPath
from sso.db.transaction import Transaction
from sso.perm.input.names import project_id_from_title
from sso.perm.input.project import ProjectRecord, read_project_fields
from sso.perm.stores.locks import lock_project
from sso.perm.stores.projects import TEXT_FIELDS, create_project, read_project, save_project
from sso.perm.stores.record_lists import list_projects
from sso.state.location import UniqueKeys, read_records
from sso.state.sections.user_references import find_user_id
from sso.state.summary import CREATED, ApplySummary

SECTION = "projects"
FIELDS = frozenset(ProjectRecord.model_fields)


class ProjectPart(Struct, frozen=True):
    location: FieldPath
    id: str
    fields: dict[str, Any]
    admins: list[str]  # user ids or logins
    author: str | None


def read(value: object, warnings: list[str]) -> list[ProjectPart]:
    parts = []
    unique = UniqueKeys()
    for location, item in read_records((SECTION,), value, FIELDS):
        project_id = _read_id(item, location)
        fields, more = read_project_fields(project_id, item, location, ProjectRecord)
        warnings += more
        fields.pop("id", None)
        part = ProjectPart(location, project_id, fields, fields.pop("admins", []), fields.pop("author", None))
        unique.add((*location, "title"), part.id)
        parts.append(part)
    return parts


def _read_id(item: dict[str, Any], location: FieldPath) -> str:
    name = "id" if "id" in item else "title"
    if name not in item:
        raise FieldError((*location, "title"), "is required")
    project_id = project_id_from_title(item[name], (*location, name))
    if project_id != item.get("id", project_id):
        raise FieldError((*location, "id"), "must be lower-case letters, digits and underscores")
    return project_id


async def create_missing(
    tx: Transaction, actor: AuditActor, summary: ApplySummary, parts: list[ProjectPart]
) -> dict[str, list[str]]:
    """Creates the projects that do not exist. Returns the user ids of the administrators of each project."""
    admins: dict[str, list[str]] = {}
    for part in parts:
        with summary.at(part.location):
            user_ids = [await find_user_id(tx, name, ("admins", n)) for n, name in enumerate(part.admins)]
            admins[part.id] = list(dict.fromkeys(user_ids))
            row = await read_project(tx, part.id)
            if row is None:
                author = await _find_author(tx, part)
                without_settings = {name: value for name, value in part.fields.items() if name != "settings"}
                await create_project(tx, actor, part.id, without_settings, author, admins[part.id])
                summary.record(part.location, CREATED)
            # The author of a project stays when the user has been erased.
            elif part.author not in (None, row["author"]) and await _find_author(tx, part) != row["author"]:
                raise FieldError(("author",), "cannot be changed")
    return admins


async def _find_author(tx: Transaction, part: ProjectPart) -> str:
    return await find_user_id(tx, part.author, ("author",)) if part.author else ""


async def apply_settings(tx: Transaction, actor: AuditActor, summary: ApplySummary, parts: list[ProjectPart]) -> None:
    for part in parts:
        with summary.at(part.location):
            old = await lock_project(tx, part.id)
            desired = part.fields | {"settings": part.fields.get("settings", {})}
            stored = {name: old[name] for name in TEXT_FIELDS} | {
                "settings": {name: old["settings"].get(name) for name in desired["settings"]}
            }
            changed = any(value != stored[name] for name, value in desired.items())
            if changed or old["removed"]:
                await save_project(tx, actor, part.id, part.fields)
            summary.record_change(part.location, changed=changed)


async def export(tx: Transaction) -> list[dict[str, Any]]:
    """Exports the projects without administrators, which the section ``memberships`` has.

    An author whom the section ``users`` does not have, such as an erased one, is left out.
    """
    exported = []
    rows = await list_projects(tx)
    logins = await read_logins(tx, {row["author"] for row in rows})
    for row in rows:
        project: dict[str, Any] = {"id": row["id"]} if project_id_from_title(row["title"]) != row["id"] else {}
        project |= {name: row[name] for name in ("title", "description", "aliases", "settings")}
        project |= {"display_name": row["display_name"]} if row["display_name"] else {}
        exported.append(project | ({"author": row["author"]} if logins.get(row["author"]) else {}))
    return exported
