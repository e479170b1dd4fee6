"""Projects in the database (§2.4). Every change is written to the audit trail."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden
from sso.core.moments import rfc3339
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, project_key
from sso.perm.errors import PermissionConflict
from sso.perm.input.names import project_id_from_title
from sso.perm.input.references import check_services
from sso.perm.stores.builtin_roles import ADMIN_ROLE
from sso.perm.stores.compilation import read_application
from sso.perm.stores.locks import lock_project, share_lock_applications
from sso.perm.stores.project_state import read_resources
from sso.perm.stores.user_limits import read_user_limits, within_user_limits
from sso.perm.stores.user_rows import require_can_administer

TEXT_FIELDS = ("title", "display_name", "description", "aliases")
MAX_REMOVED_PROJECTS = 100  # of one author; a removed project keeps its names

_GET = Statement("SELECT * FROM projects WHERE id = :id")
# project_names also holds the id that would be derived from a changed title, so that titles stay unique. A project
# cannot be found by such a name: `resolve_project_id` compares the name with the id and the aliases.
_BY_NAME = Statement(
    "SELECT p.id, p.aliases FROM project_names n JOIN projects p ON p.id = n.project_id WHERE n.name = :key"
)
_LOCK_AUTHOR = Statement("SELECT pg_advisory_xact_lock(hashtextextended('author:' || :user_id, 0))")
AUTHORED_SQL = "(SELECT count(*) FROM projects p WHERE p.author = item.user_id AND NOT p.removed)"
_COUNT_AUTHORED = Statement(
    f"SELECT {AUTHORED_SQL} FROM (VALUES (:user_id)) item (user_id)",
)
_COUNT_REMOVED = Statement("SELECT count(*) FROM projects WHERE author = :user_id AND removed")
_CREATE = Statement(
    """INSERT INTO projects (id, title, display_name, description, aliases, settings, author)
    VALUES (:id, :title, :display_name, :description, :aliases, :settings, :author) RETURNING *"""
)
_ADD_NAMES = Statement("INSERT INTO project_names (name, project_id) SELECT unnest(CAST(:names AS text[])), :id")
_DELETE_NAMES = Statement("DELETE FROM project_names WHERE project_id = :id AND name <> :id")
_ADD_MEMBER = Statement(
    """INSERT INTO project_members (project_id, user_id, level, role) VALUES (:id, :user_id, 'project', :role)
    ON CONFLICT DO NOTHING"""
)
_SAVE = Statement(
    """UPDATE projects SET title = :title, display_name = :display_name, description = :description,
        aliases = :aliases, settings = :settings
    WHERE id = :id RETURNING *"""
)
_REMOVE = Statement("UPDATE projects SET removed = true WHERE id = :id RETURNING *")
_RESTORE = Statement("UPDATE projects SET removed = false WHERE id = :id RETURNING *")
_MEMBER_ROLES = Statement("SELECT DISTINCT role FROM project_members WHERE project_id = :id")


async def read_project(runner: Runner, project_id: str) -> Row | None:
    return await runner.row(_GET, id=project_id)


async def resolve_project_id(runner: Runner, name: str) -> str:
    """Returns the id of the project with this id or alias, or ``name`` itself if there is no such project."""
    key = project_key(name)
    row = await runner.row(_BY_NAME, key=key)
    if row is None or key not in map(project_key, (row["id"], *row["aliases"])):
        return name
    return str(row["id"])


async def count_authored(runner: Runner, user_id: str) -> int:
    """Returns how many projects, not counting removed ones, have this author."""
    return int(await runner.value(_COUNT_AUTHORED, user_id=user_id))


@contextmanager
def project_name_conflicts() -> Iterator[None]:
    """Turns the violation of a unique name inside this block into PermissionConflict."""
    try:
        yield
    except UniqueViolation:
        raise PermissionConflict("title or aliases: already used by another project") from None


async def require_author_quota(
    tx: Transaction, author: str, max_projects: int | None, max_removed: int | None = MAX_REMOVED_PROJECTS
) -> None:
    """Refuses another project of an author with too many projects or removed projects; None means no limit.

    The author is locked, so the counts stay the same until the transaction ends.
    """
    await tx.value(_LOCK_AUTHOR, user_id=author)
    if max_projects is not None and await count_authored(tx, author) >= max_projects:
        raise PermissionConflict(f"at most {max_projects} projects can be created")
    if max_removed is not None and await tx.value(_COUNT_REMOVED, user_id=author) >= max_removed:
        raise PermissionConflict(
            f"an author with {max_removed} removed projects cannot create more: their names are kept"
        )


async def create_project(
    tx: Transaction, actor: AuditActor, project_id: str, fields: dict[str, Any], author: str, admins: list[str]
) -> Row:
    """Creates a project with its administrators. Raises FieldError for one who can have no administrative rights."""
    await require_can_administer(tx, filter(None, admins), ("admins",))
    await share_lock_applications(tx, [CENTRAL_APPLICATION_ID])
    row = await tx.row(
        _CREATE,
        id=project_id,
        title=fields["title"],
        display_name=fields.get("display_name", ""),
        description=fields.get("description", ""),
        aliases=fields.get("aliases", []),
        settings=fields.get("settings", {}),
        author=author,
    )
    assert row is not None
    names = {project_id, project_id_from_title(fields["title"]), *map(project_key, fields.get("aliases", ()))}
    await tx.value(_ADD_NAMES, names=sorted(names), id=project_id)
    async with within_user_limits(tx, CENTRAL_APPLICATION_ID, await read_user_limits(tx, [ADMIN_ROLE])):
        for user_id in dict.fromkeys(filter(None, admins)):
            await tx.value(_ADD_MEMBER, id=project_id, user_id=user_id, role=ADMIN_ROLE)
    after = managed_json(row) | {"admins": admins}
    await trail.write(tx, actor, "project.publish", project_id, None, after, project_id=project_id)
    return row


async def save_project(tx: Transaction, actor: AuditActor, project_id: str, changes: dict[str, Any]) -> Row:
    """Saves the fields in ``changes``, and of ``settings`` the members in it; everything else stays."""
    await share_lock_applications(tx, referenced_applications(changes))
    old = await lock_project(tx, project_id)
    if old["removed"]:
        raise Forbidden("removed")
    new = {name: changes.get(name, old[name]) for name in TEXT_FIELDS}
    new["settings"] = old["settings"] | changes.get("settings", {})
    if "services" in changes.get("settings", {}):
        await _check_services(tx, project_id, changes["settings"]["services"])
    if "aliases" in changes or "title" in changes:
        names = {*map(project_key, new["aliases"]), project_id_from_title(new["title"])} - {project_id}
        await tx.value(_DELETE_NAMES, id=project_id)
        await tx.value(_ADD_NAMES, names=sorted(names), id=project_id)
    row = await tx.row(_SAVE, id=project_id, **new)
    assert row is not None
    await trail.write(
        tx, actor, "project.save", project_id, managed_json(old), managed_json(row), project_id=project_id
    )
    return row


def referenced_applications(changes: dict[str, Any]) -> list[int]:
    """Returns the applications that changes of a project name in ``settings.services``."""
    return [int(key) for key in changes.get("settings", {}).get("services", ())]


async def remove_project(tx: Transaction, actor: AuditActor, project_id: str) -> None:
    """Marks a project as removed. Its records stay; the rights that it gives end."""
    old = await lock_project(tx, project_id)
    new = await tx.row(_REMOVE, id=project_id)
    await trail.write(
        tx, actor, "project.delete", project_id, managed_json(old), managed_json(new), project_id=project_id
    )


async def restore_project(tx: Transaction, actor: AuditActor, project_id: str) -> Row:
    """Restores a removed project: its members, groups and applications have again the rights that it gives."""
    await share_lock_applications(tx, [CENTRAL_APPLICATION_ID])
    old = await lock_project(tx, project_id)
    if not old["removed"]:
        raise PermissionConflict("the project is not removed")
    roles = [row["role"] for row in await tx.rows(_MEMBER_ROLES, id=project_id)]
    async with within_user_limits(tx, CENTRAL_APPLICATION_ID, await read_user_limits(tx, roles)):
        row = await tx.row(_RESTORE, id=project_id)
    await trail.write(
        tx,
        actor,
        "project.restore",
        project_id,
        managed_json(old),
        managed_json(row),
        project_id=project_id,
    )
    assert row is not None
    return row


async def _check_services(tx: Transaction, project_id: str, services: dict[str, Any]) -> None:
    resources = await read_resources(tx, project_id)
    applications = {}
    for key in services:
        application = await read_application(tx, int(key)) if int(key) in resources.applications else None
        if application is not None:
            applications[int(key)] = application
    check_services(services, resources, applications)


def managed_json(row: Any) -> dict[str, Any]:
    """Returns the record with the name for people, which the management API and the audit trail have."""
    return project_json(row) | {"display_name": row["display_name"]}


def project_json(row: Any) -> dict[str, Any]:
    """Returns the record of the specification."""
    return {
        "id": row["id"],
        "title": row["title"],
        "description": row["description"],
        "aliases": list(row["aliases"]),
        "tags": list(row["tags"]),
        "settings": row["settings"],
        "author": row["author"],
        "created": rfc3339(row["created"]),
        "removed": row["removed"],
    }
