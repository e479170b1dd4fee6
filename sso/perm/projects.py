"""Projects: publish, get, save, delete (§2.4, §4.6)."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from sso.core.errors import Forbidden, NotFound
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.credentials.access_keys import rfc3339
from sso.perm.delegation import Delegation
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, project_key
from sso.perm.engine.operations import Operation
from sso.perm.engine.project_quota import project_quota
from sso.perm.errors import PermissionConflict
from sso.perm.input import validators
from sso.perm.input.names import project_id_from_title, read_aliases, read_segment
from sso.perm.input.project import check_services, read_project_settings
from sso.perm.request import PermissionRequest
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.builtin_roles import ADMIN_ROLE
from sso.perm.stores.facts import read_application
from sso.perm.stores.project_state import belongings, lock_project
from sso.perm.stores.roles import keep_applications
from sso.perm.stores.user_limits import count_holders, require_limits

REMOVED_MAX = 100  # removed projects of one author: each keeps its names for ever
READ_ONLY = frozenset(("id", "tags", "author", "created", "removed"))
KNOWN = READ_ONLY | {"title", "description", "aliases", "settings"}

_GET = Statement("SELECT * FROM projects WHERE id = :id")
# The id that a changed title would make is held as well, so that titles stay unique; it is no name of the project.
_NAMED = Statement(
    "SELECT p.id, p.aliases FROM project_names n JOIN projects p ON p.id = n.project_id WHERE n.name = :key"
)
_LOCK_AUTHOR = Statement("SELECT pg_advisory_xact_lock(hashtextextended('author:' || :user_id, 0))")
_AUTHORED = Statement("SELECT count(*) FROM projects WHERE author = :user_id AND NOT removed")
_REMOVED = Statement("SELECT count(*) FROM projects WHERE author = :user_id AND removed")
_CREATE = Statement(
    """INSERT INTO projects (id, title, description, aliases, settings, author)
    VALUES (:id, :title, :description, :aliases, :settings, :author) RETURNING *"""
)
_NAME = Statement("INSERT INTO project_names (name, project_id) SELECT unnest(CAST(:names AS text[])), :id")
_UNNAME = Statement("DELETE FROM project_names WHERE project_id = :id AND name <> :id")
_MEMBER = Statement(
    """INSERT INTO project_members (project_id, user_id, level, role) VALUES (:id, :user_id, 'project', :role)
    ON CONFLICT DO NOTHING"""
)
_SAVE = Statement(
    """UPDATE projects SET title = :title, description = :description, aliases = :aliases, settings = :settings
    WHERE id = :id RETURNING *"""
)
_REMOVE = Statement("UPDATE projects SET removed = true WHERE id = :id RETURNING *")


class Target(Protocol):
    """What must be known of the user whom a project is published for."""

    @property
    def user_id(self) -> str: ...

    @property
    def totp_sealed(self) -> str | None: ...

    @property
    def disabled(self) -> bool: ...


FindUser = Callable[[str], Awaitable[Target | None]]


class ProjectEndpoint:
    def __init__(self, database: Database, desk: Authorizer, find_user: FindUser) -> None:
        self._database = database
        self._desk = desk
        self._find_user = find_user

    async def info(self, call: PermissionRequest) -> dict[str, Any]:
        """POST /api/permissions/user/info: how many projects the caller is the author of."""
        return call.answer(projects=await self._database.value(_AUTHORED, user_id=call.caller.user_id))

    async def publish(self, call: PermissionRequest) -> dict[str, Any]:
        title = call.text("project", 1024)
        made = project_id_from_title(title)
        target_name = validators.text(call.fields["user"], "user", 320, least=1) if "user" in call.fields else None
        standing = await self._desk.standing(call.caller)
        standing.require(Operation.PUBLISH)
        limit = None if standing.rights.is_root else project_quota(standing.rights.central)
        target = await self._target(target_name) if target_name is not None else None
        admins = [call.caller.user_id, *([target.user_id] if target else [])]
        author = call.caller.user_id

        async def work(tx: Transaction) -> Row:
            await tx.value(_LOCK_AUTHOR, user_id=author)
            if limit is not None and await tx.value(_AUTHORED, user_id=author) >= limit:
                raise PermissionConflict(f"at most {limit} projects can be created")
            if not standing.rights.is_root and await tx.value(_REMOVED, user_id=author) >= REMOVED_MAX:
                raise PermissionConflict(
                    f"an author with {REMOVED_MAX} removed projects cannot create more: their names are kept"
                )
            return await create_project(tx, call.caller.actor, made, {"title": title}, author, admins)

        return call.answer(data=shown(await written(self._database, work)))

    async def _target(self, name: str) -> Target:
        target = await self._find_user(name)
        if target is None or target.disabled:
            raise NotFound("user not found")
        if target.totp_sealed is None:
            raise PermissionConflict("user: has no second factor (codes by e-mail do not count)")
        return target

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        action = call.action("get", "save", "delete")
        data = call.required_data()
        wanted = await self.resolve(data.get("id"))
        call.ignore_unknown(data, KNOWN)
        given, warnings = read_project(wanted, data) if action == "save" else ({}, [])
        call.warnings.extend(warnings)
        standing = await self._desk.standing(call.caller)
        operation = {
            "get": Operation.PROJECT_GET,
            "save": Operation.PROJECT_SAVE,
            "delete": Operation.PROJECT_DELETE,
        }[action]
        row = await self.visible(standing, wanted, operation)
        if action == "get":
            return call.answer(data=shown(row))
        if row["removed"]:
            raise Forbidden("removed")
        if action == "save":
            return call.answer(data=shown(await self._save(call, wanted, given)))
        await self._delete(call, wanted)
        return call.answer()

    async def resolve(self, name: object, where: str = "data.id") -> str:
        """The id for an id or alias; something that is no project stays as it is, and is found nowhere."""
        checked = read_segment(name, where)
        key = project_key(checked)
        row = await self._database.row(_NAMED, key=key)
        if row is None or key not in map(project_key, (row["id"], *row["aliases"])):
            return checked
        return str(row["id"])

    async def visible(self, standing: CallerRights, wanted: str, operation: Operation) -> Row:
        """The record, for those who may do this to it. Only root is told that there is no such project."""
        standing.require(operation, project_id=wanted)
        row = await read_row(self._database, wanted)
        if row is None:
            raise NotFound("project not found")
        return row

    async def _save(self, call: PermissionRequest, wanted: str, given: dict[str, Any]) -> Row:
        async def work(tx: Transaction) -> Row:
            delegation = await Delegation.begin(tx, call.caller, wanted, _named_applications(given))
            row = await save_project(tx, call.caller.actor, wanted, given)
            await delegation.judge()
            return row

        return await written(self._database, work)

    async def _delete(self, call: PermissionRequest, wanted: str) -> None:
        await self._database.transaction(lambda tx: remove_project(tx, call.caller.actor, wanted))


def read_project(wanted: str, data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields that were given, and warnings. The id stays what the first title made it."""
    given: dict[str, Any] = {}
    warnings: list[str] = []
    if "title" in data:
        project_id_from_title(data["title"], "title")
        given["title"] = data["title"]
    if "description" in data:
        given["description"] = validators.text(data["description"], "description")
    if "aliases" in data:
        given["aliases"] = list(read_aliases(data["aliases"], wanted))
    if "settings" in data:
        given["settings"], warnings = read_project_settings(data["settings"])
    return given, warnings


async def create_project(
    tx: Transaction, actor: AuditActor, made: str, given: dict[str, Any], author: str, admins: list[str]
) -> Row:
    """The project with its administrators, or nothing."""
    await keep_applications(tx, [CENTRAL_APPLICATION_ID])
    row = await tx.row(
        _CREATE,
        id=made,
        title=given["title"],
        description=given.get("description", ""),
        aliases=given.get("aliases", []),
        settings=given.get("settings", {}),
        author=author,
    )
    assert row is not None
    await tx.value(_NAME, names=sorted({made, *map(project_key, given.get("aliases", ()))}), id=made)
    counted = await count_holders(tx, [ADMIN_ROLE])
    for user_id in dict.fromkeys(filter(None, admins)):
        await tx.value(_MEMBER, id=made, user_id=user_id, role=ADMIN_ROLE)
    await require_limits(tx, counted)
    after = shown(row) | {"admins": admins}
    await audit.write(tx, actor, "project.publish", made, None, after, project_id=made)
    return row


async def save_project(tx: Transaction, actor: AuditActor, wanted: str, given: dict[str, Any]) -> Row:
    await keep_applications(tx, _named_applications(given))
    old = await lock_project(tx, wanted)
    if old["removed"]:
        raise Forbidden("removed")
    new = {name: given.get(name, old[name]) for name in ("title", "description", "aliases")}
    new["settings"] = old["settings"] | given.get("settings", {})
    if "services" in given.get("settings", {}):
        await _check_services(tx, wanted, given["settings"]["services"])
    if "aliases" in given or "title" in given:
        names = {*map(project_key, new["aliases"]), project_id_from_title(new["title"])} - {wanted}
        await tx.value(_UNNAME, id=wanted)
        await tx.value(_NAME, names=sorted(names), id=wanted)
    row = await tx.row(_SAVE, id=wanted, **new)
    assert row is not None
    await audit.write(tx, actor, "project.save", wanted, shown(old), shown(row), project_id=wanted)
    return row


def _named_applications(given: dict[str, Any]) -> list[int]:
    return [int(key) for key in given.get("settings", {}).get("services", ())]


async def remove_project(tx: Transaction, actor: AuditActor, wanted: str) -> None:
    """Only marked: the record stays, and everything that it gave ends."""
    old = await lock_project(tx, wanted)
    new = await tx.row(_REMOVE, id=wanted)
    await audit.write(tx, actor, "project.delete", wanted, shown(old), shown(new), project_id=wanted)


async def read_row(runner: Runner, wanted: str) -> Row | None:
    return await runner.row(_GET, id=wanted)


async def _check_services(tx: Transaction, wanted: str, services: dict[str, Any]) -> None:
    has = await belongings(tx, wanted)
    known = {}
    for key in services:
        application = await read_application(tx, int(key)) if int(key) in has.applications else None
        if application is not None:
            known[int(key)] = application
    check_services(services, has, known)


async def written(database: Database, work: Callable[[Transaction], Awaitable[Row]]) -> Row:
    try:
        return await database.transaction(work)
    except UniqueViolation:
        raise PermissionConflict("this title, or one of the aliases, is taken") from None


def shown(row: Any) -> dict[str, Any]:
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
