"""Applications in the database: made, changed and removed, each with its entry in the audit trail."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from sso.core.encryption import Keyring, place
from sso.core.errors import Forbidden
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.credentials.access_keys import end_keys
from sso.perm.credentials.application_keys import end_signing_keys, set_from_meta
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.builtin_roles import NEW_LOGIN, NEW_SECRET_DATA
from sso.perm.stores.cascade import Cascade
from sso.perm.stores.project_state import lock_projects
from sso.perm.stores.roles import ANY_PROJECT, lock_application

NAME_TAKEN = "name: another application of this project has it"

_GET = Statement("SELECT * FROM applications WHERE application_id = :application_id")
_LOCK = Statement("SELECT * FROM applications WHERE application_id = :application_id FOR UPDATE")
_PROJECT = Statement("SELECT removed FROM projects WHERE id = :project_id FOR SHARE")
# An id may also be given by hand: what the sequence says next may be taken, now or by somebody who is not done yet.
_CREATE = Statement(
    """INSERT INTO applications
        (application_id, name, description, project_id, settings, service_meta, login, secret_data)
    VALUES (coalesce(CAST(:application_id AS int),
            nextval(pg_get_serial_sequence('applications', 'application_id'))),
        :name, :description, :project_id, :settings, :service_meta, :login, :secret_data)
    ON CONFLICT (application_id) DO NOTHING RETURNING *"""
)
_UPDATE = Statement(
    """UPDATE applications SET name = :name, description = :description, project_id = :project_id,
        settings = :settings, service_meta = :service_meta
    WHERE application_id = :application_id RETURNING *"""
)
_SET_PRIVATE_KEY = Statement(
    "UPDATE applications SET private_key_sealed = :sealed WHERE application_id = :application_id"
)
_REMOVE = Statement("UPDATE applications SET removed = true WHERE application_id = :application_id")


async def read_row(runner: Runner, wanted: int) -> Row | None:
    return await runner.row(_GET, application_id=wanted)


async def lock_row(tx: Transaction, wanted: int) -> Row | None:
    return await tx.row(_LOCK, application_id=wanted)


async def create_application(
    tx: Transaction, actor: AuditActor, keyring: Keyring, given: dict[str, Any], wanted: int | None = None
) -> Row:
    """A new application, with the id that is wanted or the next one that nobody has."""
    if "name" not in given:
        raise InvalidInput("name: is required")
    await _check_project(tx, given.get("project_id"))
    meta = given.get("service_meta", {})
    values = {
        "name": given["name"],
        "description": given.get("description", ""),
        "project_id": given.get("project_id"),
        "settings": given.get("settings", {}),
        "service_meta": _without_private(meta),
        "login": NEW_LOGIN,
        "secret_data": NEW_SECRET_DATA,
    }
    row = None
    while row is None:
        row = await tx.row(_CREATE, application_id=wanted, **values)
        if row is None and wanted is not None:
            raise PermissionConflict("application_id: is taken")
    await _keep_keys(tx, keyring, row["application_id"], meta)
    await _audit(tx, actor, "application.create", None, row, meta)
    return row


async def save_application(
    tx: Transaction,
    actor: AuditActor,
    keyring: Keyring,
    wanted: int,
    given: dict[str, Any],
    judged_in: object = ANY_PROJECT,
) -> Row:
    """What is given replaces what was there; the members of settings and service_meta one by one. ``judged_in`` is the
    project by which the caller may save it."""
    old = await lock_application(tx, wanted, judged_in)
    if old["removed"]:
        raise Forbidden("removed")
    project_id = given.get("project_id", old["project_id"])
    if wanted == CENTRAL_APPLICATION_ID and project_id is not None:
        raise PermissionConflict("project_id: the central application belongs to no project")
    kept_meta = old["service_meta"]
    if project_id != old["project_id"]:
        await lock_projects(tx, (project_id, old["project_id"]))
        kept_meta = _without_keys(kept_meta)
    await _check_project(tx, project_id)
    meta = given.get("service_meta", {})
    row = await tx.row(
        _UPDATE,
        application_id=wanted,
        name=given.get("name", old["name"]),
        description=given.get("description", old["description"]),
        project_id=project_id,
        settings=old["settings"] | given.get("settings", {}),
        service_meta=kept_meta | _without_private(meta),
    )
    if project_id != old["project_id"]:
        await _leave_project(tx, actor, old, f"application.save {wanted}")
        await _audit_move(tx, actor, old, row)
        await _end_access_keys(tx, actor, old)
        await _end_signing_keys(tx, actor, old)
    await _keep_keys(tx, keyring, wanted, meta)
    await _audit(tx, actor, "application.save", old, row, meta)
    return row


async def remove_application(tx: Transaction, actor: AuditActor, wanted: int, judged_in: object = ANY_PROJECT) -> None:
    old = await lock_application(tx, wanted, judged_in)
    await lock_projects(tx, (old["project_id"],))
    await tx.value(_REMOVE, application_id=wanted)
    await _leave_project(tx, actor, old, f"application.delete {wanted}")
    await _audit(tx, actor, "application.delete", old, {**dict(old), "removed": True})


async def _leave_project(tx: Transaction, actor: AuditActor, old: Row, cause: str) -> None:
    """End what the project gave at the application. The project is locked: no membership that names the application is
    saved at the same time and written afterwards."""
    if old["project_id"] is not None:
        await Cascade(tx, actor, cause).end_application_in_project(old["application_id"], old["project_id"])


async def _audit_move(tx: Transaction, actor: AuditActor, old: Row, new: Row) -> None:
    """An entry in the project that the application leaves; the one that it joins has the entry of the save."""
    if old["project_id"] is not None:
        before, after = ({name: row[name] for name in ("name", "project_id")} for row in (old, new))
        about = {"project_id": old["project_id"], "application_id": old["application_id"]}
        await audit.write(tx, actor, "application.move", str(old["application_id"]), before, after, **about)


async def _end_access_keys(tx: Transaction, actor: AuditActor, old: Row) -> None:
    """Access keys were made by those who managed the application where it was."""
    about = {"project_id": old["project_id"], "application_id": old["application_id"]}
    for key in await end_keys(tx, old["application_id"]):
        await audit.write(tx, actor, "access_key.delete", key["id"], key, None, **about)


async def _end_signing_keys(tx: Transaction, actor: AuditActor, old: Row) -> None:
    """A service JWT is valid for all applications of a project: whoever has a key from before the move was never
    trusted with those of the new project."""
    wanted = old["application_id"]
    about = {"project_id": old["project_id"], "application_id": wanted}
    await tx.value(_SET_PRIVATE_KEY, application_id=wanted, sealed=None)
    for kid in await end_signing_keys(tx, wanted):
        await audit.write(tx, actor, "application.key.remove", f"{wanted}/{kid}", {"kid": kid}, None, **about)


async def written(database: Database, work: Callable[[Transaction], Awaitable[Row]]) -> Row:
    try:
        return await database.transaction(work)
    except UniqueViolation:
        raise PermissionConflict(NAME_TAKEN) from None


def private_key(keyring: Keyring, row: Row) -> str:
    """The private key that the service holds for the application; empty if it holds none."""
    sealed = row["private_key_sealed"]
    return keyring.open(_key_place(row["application_id"]), sealed) if sealed else ""


def shown(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"application_id": row["application_id"], "name": row["name"]}
    if row["description"]:
        found["description"] = row["description"]
    if row["project_id"]:
        found["project_id"] = row["project_id"]
    return found | {"removed": row["removed"]}


async def _check_project(tx: Transaction, project_id: str | None) -> None:
    if project_id is None:
        return
    removed = await tx.value(_PROJECT, project_id=project_id)
    if removed is None:
        raise InvalidInput("project_id: there is no such project")
    if removed:
        raise Forbidden("removed")


async def _keep_keys(tx: Transaction, keyring: Keyring, wanted: int, meta: dict[str, Any]) -> None:
    """The private key is sealed and never shown; a usable public key is published and trusted."""
    if "private_key" in meta:
        key = meta["private_key"]
        sealed = keyring.seal(_key_place(wanted), key) if key else None
        await tx.value(_SET_PRIVATE_KEY, application_id=wanted, sealed=sealed)
    if "public_key" in meta:
        await set_from_meta(tx, wanted, meta["public_key"])


def _key_place(application_id: int) -> str:
    return place("applications.private_key_sealed", application_id)


async def _audit(
    tx: Transaction,
    actor: AuditActor,
    operation: str,
    old: Any,
    new: Any,
    meta: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """That a private key was set is told; what it is, is not."""
    after = _audited(new)
    if "private_key" in meta:
        after["service_meta"] = {**after["service_meta"], "private_key": ""}
    await audit.write(
        tx,
        actor,
        operation,
        str(new["application_id"]),
        _audited(old) if old else None,
        after,
        project_id=new["project_id"],
        application_id=new["application_id"],
    )


def _without_private(meta: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in meta.items() if name != "private_key"}


def _without_keys(meta: dict[str, Any]) -> dict[str, Any]:
    """The member stays, empty: an application with any metadata is a service."""
    return meta | {"public_key": ""} if meta.get("public_key") else meta


def _audited(row: Any) -> dict[str, Any]:
    return shown(row) | {"settings": row["settings"], "service_meta": row["service_meta"]}
