"""Applications in the database (§2.3). Every change is written to the audit trail."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring, column_purpose
from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.stores.access_keys import delete_access_keys
from sso.perm.stores.application_keys import delete_application_keys, replace_service_meta_key
from sso.perm.stores.builtin_roles import DEFAULT_LOGIN, DEFAULT_SECRET_DATA
from sso.perm.stores.cascade import Cascade
from sso.perm.stores.locks import ANY_PROJECT, lock_application, lock_projects

NAME_TAKEN = "another application of the project already has this name"

_GET = Statement("SELECT * FROM applications WHERE application_id = :application_id")
_IDS = Statement(
    "SELECT application_id FROM applications WHERE application_id > :after ORDER BY application_id LIMIT :limit"
)
_NAME = Statement("SELECT name FROM applications WHERE application_id = :application_id")
_IS_ACTIVE = Statement(
    """SELECT 1 FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE a.application_id = :application_id AND NOT a.removed AND p.removed IS NOT TRUE"""
)
_PROJECT_REMOVED = Statement("SELECT removed FROM projects WHERE id = :project_id")
_PROJECT = Statement("SELECT removed FROM projects WHERE id = :project_id FOR SHARE")
# Ids may also be chosen by an operator, so the next value of the sequence may be taken, or become taken on commit.
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
_RESTORE = Statement("UPDATE applications SET removed = false WHERE application_id = :application_id RETURNING *")
_REMOVE = Statement("UPDATE applications SET removed = true WHERE application_id = :application_id")


async def read_application_row(runner: Runner, application_id: int) -> Row | None:
    return await runner.row(_GET, application_id=application_id)


async def read_application_ids(runner: Runner, after: int, limit: int) -> list[int]:
    """Returns the next ids of applications, also of removed ones."""
    return [row["application_id"] for row in await runner.rows(_IDS, after=after, limit=limit)]


async def read_application_name(runner: Runner, application_id: int) -> str:
    return str(await runner.value(_NAME, application_id=application_id) or "")


async def is_active_application(runner: Runner, application_id: int) -> bool:
    """Returns whether the application exists, and neither it nor its project is removed."""
    return await runner.value(_IS_ACTIVE, application_id=application_id) is not None


async def refuse_removed_application(tx: Runner, application: Row) -> None:
    """Raises Forbidden if a locked application, or its project, is removed."""
    project_id = application["project_id"]
    if application["removed"] or (project_id and await tx.value(_PROJECT_REMOVED, project_id=project_id)):
        raise Forbidden("removed")


async def create_application(
    tx: Transaction,
    actor: AuditActor,
    keyring: Keyring,
    fields: dict[str, Any],
    application_id: int | None = None,
) -> Row:
    """Creates an application with this id, or with the next free one."""
    if "name" not in fields:
        raise FieldError(("name",), "is required")
    await _check_project(tx, fields.get("project_id"))
    meta = fields.get("service_meta", {})
    values = {
        "name": fields["name"],
        "description": fields.get("description", ""),
        "project_id": fields.get("project_id"),
        "settings": fields.get("settings", {}),
        "service_meta": _without_private(meta),
        "login": DEFAULT_LOGIN,
        "secret_data": DEFAULT_SECRET_DATA,
    }
    row = None
    while row is None:
        row = await tx.row(_CREATE, application_id=application_id, **values)
        if row is None and application_id is not None:
            raise FieldError(("application_id",), "is already in use", status=409)
    await _store_keys(tx, keyring, row["application_id"], meta)
    await _audit(tx, actor, "application.create", None, row, meta)
    return row


async def save_application(
    tx: Transaction,
    actor: AuditActor,
    keyring: Keyring,
    application_id: int,
    changes: dict[str, Any],
    authorized_project: object = ANY_PROJECT,
) -> Row:
    """Saves the fields in ``changes``, and of ``settings`` and ``service_meta`` the members in it.

    ``authorized_project`` is the project whose rights the caller used, see `lock_application`.
    """
    old = await lock_application(tx, application_id, authorized_project)
    if old["removed"]:
        raise Forbidden("removed")
    project_id = changes.get("project_id", old["project_id"])
    if application_id == CENTRAL_APPLICATION_ID and project_id is not None:
        raise FieldError(("project_id",), "the central application belongs to no project", status=409)
    kept_meta = old["service_meta"]
    if project_id != old["project_id"]:
        await lock_projects(tx, (project_id, old["project_id"]))
        kept_meta = _without_keys(kept_meta)
    await _check_project(tx, project_id)
    meta = changes.get("service_meta", {})
    row = await tx.row(
        _UPDATE,
        application_id=application_id,
        name=changes.get("name", old["name"]),
        description=changes.get("description", old["description"]),
        project_id=project_id,
        settings=old["settings"] | changes.get("settings", {}),
        service_meta=kept_meta | _without_private(meta),
    )
    if project_id != old["project_id"]:
        await _leave_project(tx, actor, old, f"application.save {application_id}")
        await _audit_move(tx, actor, old, row)
        # Managers of the old project may know the keys, so they must not stay valid.
        await delete_access_keys(tx, actor, application_id, old["project_id"])
        await _end_signing_keys(tx, actor, old)
    await _store_keys(tx, keyring, application_id, meta)
    await _audit(tx, actor, "application.save", old, row, meta)
    return row


async def remove_application(
    tx: Transaction, actor: AuditActor, application_id: int, authorized_project: object = ANY_PROJECT
) -> None:
    old = await lock_application(tx, application_id, authorized_project)
    await lock_projects(tx, (old["project_id"],))
    await tx.value(_REMOVE, application_id=application_id)
    await _leave_project(tx, actor, old, f"application.delete {application_id}")
    await _audit(tx, actor, "application.delete", old, {**dict(old), "removed": True})


async def restore_application(tx: Transaction, actor: AuditActor, application_id: int) -> Row:
    """Restores a removed application: its roles and keys are valid again."""
    old = await lock_application(tx, application_id)
    if not old["removed"]:
        raise PermissionConflict("the application is not removed")
    await lock_projects(tx, (old["project_id"],))
    await _check_project(tx, old["project_id"])
    row = await tx.row(_RESTORE, application_id=application_id)
    assert row is not None
    await _audit(tx, actor, "application.restore", old, row)
    return row


async def _leave_project(tx: Transaction, actor: AuditActor, old: Row, cause: str) -> None:
    """Ends the rights that the project gives at the application.

    The project is locked, so no concurrent save of its membership can name the application.
    """
    if old["project_id"] is not None:
        await Cascade(tx, actor, cause).remove_application_from_project(old["application_id"], old["project_id"])


async def _audit_move(tx: Transaction, actor: AuditActor, old: Row, new: Row) -> None:
    """Writes an entry in the project that the application leaves; the entry of the save is in the project it joins."""
    if old["project_id"] is not None:
        before, after = ({name: row[name] for name in ("name", "project_id")} for row in (old, new))
        scope = {"project_id": old["project_id"], "application_id": old["application_id"]}
        await trail.write(tx, actor, "application.move", str(old["application_id"]), before, after, **scope)


async def _end_signing_keys(tx: Transaction, actor: AuditActor, old: Row) -> None:
    """Deletes the keys of an application that moves to another project.

    A service JWT is valid for all applications of a project, so a key from the old project must not be valid there.
    """
    application_id = old["application_id"]
    scope = {"project_id": old["project_id"], "application_id": application_id}
    await tx.value(_SET_PRIVATE_KEY, application_id=application_id, sealed=None)
    for kid in await delete_application_keys(tx, application_id):
        await trail.write(tx, actor, "application.key.remove", f"{application_id}/{kid}", {"kid": kid}, None, **scope)


def key_file_conflict() -> FieldError:
    """Returns the error for a move of an application that a node has a key file of, which would stay valid."""
    text = "the application has a key file, which would be valid in the other project: remove it"
    return FieldError(("project_id",), text, status=409)


@contextmanager
def application_name_conflicts() -> Iterator[None]:
    """Turns the violation of a unique name inside this block into FieldError."""
    try:
        yield
    except UniqueViolation:
        raise FieldError(("name",), NAME_TAKEN, status=409) from None


def private_key(keyring: Keyring, row: Row) -> str:
    """Returns the private key that is stored for the application; empty if there is none."""
    sealed = row["private_key_sealed"]
    return keyring.decrypt(_private_key_purpose(row["application_id"]), sealed) if sealed else ""


def application_json(row: Any) -> dict[str, Any]:
    """The public part of the record; empty optional fields are left out."""
    record: dict[str, Any] = {"application_id": row["application_id"], "name": row["name"]}
    if row["description"]:
        record["description"] = row["description"]
    if row["project_id"]:
        record["project_id"] = row["project_id"]
    return record | {"removed": row["removed"]}


async def _check_project(tx: Transaction, project_id: str | None) -> None:
    if project_id is None:
        return
    removed = await tx.value(_PROJECT, project_id=project_id)
    if removed is None:
        raise FieldError(("project_id",), "there is no such project")
    if removed:
        raise Forbidden("removed")


async def _store_keys(tx: Transaction, keyring: Keyring, application_id: int, meta: dict[str, Any]) -> None:
    """Stores the private key encrypted, and a usable public key among the keys that are published and trusted."""
    if "private_key" in meta:
        key = meta["private_key"]
        sealed = keyring.encrypt(_private_key_purpose(application_id), key) if key else None
        await tx.value(_SET_PRIVATE_KEY, application_id=application_id, sealed=sealed)
    if "public_key" in meta:
        await replace_service_meta_key(tx, application_id, meta["public_key"])


def _private_key_purpose(application_id: int) -> str:
    return column_purpose("applications.private_key_sealed", application_id)


async def _audit(
    tx: Transaction,
    actor: AuditActor,
    operation: str,
    old: Any,
    new: Any,
    meta: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes an entry. If a private key was set, the entry says so without the value."""
    after = _audited(new)
    if "private_key" in meta:
        after["service_meta"] = {**after["service_meta"], "private_key": ""}
    await trail.write(
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
    """Empties the public key but keeps the member: an application with any metadata is a service."""
    return meta | {"public_key": ""} if meta.get("public_key") else meta


def _audited(row: Any) -> dict[str, Any]:
    return application_json(row) | {"settings": row["settings"], "service_meta": row["service_meta"]}
