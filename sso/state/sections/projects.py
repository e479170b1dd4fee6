"""``projects``: made before what belongs to them, settled after it, so that their settings may name it."""

from dataclasses import dataclass
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import project_id_from_title
from sso.perm.projects import create_project, read_project, read_row, save_project
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.project_state import lock_project
from sso.state.location import UniqueKeys, joined, records, said_at
from sso.state.sections.people import user_named
from sso.state.summary import CREATED, ApplySummary

SECTION = "projects"
# The id is what the title makes it; it is given only where the title was changed later.
FIELDS = frozenset(("id", "title", "description", "admins", "aliases", "settings", "author"))

_ALL = Statement("SELECT * FROM projects WHERE NOT removed ORDER BY created, id")


@dataclass(frozen=True)
class ProjectPart:
    place: str
    id: str
    given: dict[str, Any]
    admins: list[str]  # user ids or logins
    author: str | None


def read(value: object, warnings: list[str]) -> list[ProjectPart]:
    found = []
    once = UniqueKeys()
    for place, item in records(SECTION, value, FIELDS):
        with said_at(place):
            part, more = _read(place, item)
        once(f"{place}.title", part.id)
        found.append(part)
        warnings += [joined(place, warning) for warning in more]
    return found


def _read(place: str, item: dict[str, Any]) -> tuple[ProjectPart, list[str]]:
    if "title" not in item:
        raise InvalidInput("title: is required")
    made = project_id_from_title(item["title"], "title")
    if "id" in item:
        made = project_id_from_title(item["id"], "id")
        if made != item["id"]:
            raise InvalidInput("id: must be what a title makes: small letters, digits, underscores")
    admins = [
        validators.read_text(admin, f"admins[{at}]", 320, min_length=1)
        for at, admin in enumerate(validators.read_array(item.get("admins", []), "admins"))
    ]
    author = validators.read_text(item["author"], "author", 320) if "author" in item else None
    given, warnings = read_project(made, item)
    return ProjectPart(place, made, given, admins, author), warnings


async def make(
    tx: Transaction, actor: AuditActor, tally: ApplySummary, parts: list[ProjectPart]
) -> dict[str, list[str]]:
    """Those that are missing. Returns the user ids of the administrators that each is to have."""
    admins: dict[str, list[str]] = {}
    for part in parts:
        with tally.at(part.place):
            named = [await user_named(tx, name, f"admins[{at}]") for at, name in enumerate(part.admins)]
            admins[part.id] = list(dict.fromkeys(named))
            author = await user_named(tx, part.author, "author") if part.author else ""
            row = await read_row(tx, part.id)
            if row is None:
                without = {name: value for name, value in part.given.items() if name != "settings"}
                await create_project(tx, actor, part.id, without, author, admins[part.id])
                tally.note(part.place, CREATED)
            elif part.author is not None and row["author"] != author:
                raise InvalidInput("author: stays who it is")
    return admins


async def settle(tx: Transaction, actor: AuditActor, tally: ApplySummary, parts: list[ProjectPart]) -> None:
    for part in parts:
        with tally.at(part.place):
            old = await lock_project(tx, part.id)
            wanted = part.given | {"settings": part.given.get("settings", {})}
            now = {name: old[name] for name in ("title", "description", "aliases")} | {
                "settings": {name: old["settings"].get(name) for name in wanted["settings"]}
            }
            changed = any(value != now[name] for name, value in wanted.items())
            if changed or old["removed"]:
                await save_project(tx, actor, part.id, part.given)
            tally.changed(part.place, changed=changed)


async def export(tx: Transaction) -> list[dict[str, Any]]:
    """Administrators stand in the memberships."""
    found = []
    for row in await tx.rows(_ALL):
        project: dict[str, Any] = {"id": row["id"]} if project_id_from_title(row["title"]) != row["id"] else {}
        project |= {name: row[name] for name in ("title", "description", "aliases", "settings")}
        found.append(project | ({"author": row["author"]} if row["author"] else {}))
    return found
