"""POST /api/permissions/application, and its tags (§2.3, §4.4)."""

from typing import Any

from sso.core.refused import Forbidden
from sso.core.sealed import Keyring, place
from sso.db.bridge import Database, Row, Transaction
from sso.db.errors import Duplicate
from sso.db.statement import Statement
from sso.perm import audit
from sso.perm.app_keys import ApplicationKeys
from sso.perm.call import Call, application_id
from sso.perm.central import NEW_LOGIN, NEW_SECRET_DATA
from sso.perm.desk import Desk, Standing
from sso.perm.engine.operations import Operation
from sso.perm.errors import Conflict, Invalid
from sso.perm.input import kinds
from sso.perm.input.service import read_service_meta, read_settings, read_tags
from sso.perm.names import CENTRAL

# Sent back as get gave them, or owned by other endpoints: a save ignores them silently.
READ_ONLY = frozenset(("application_id", "removed", "created", "version", "updated_at"))
KNOWN = READ_ONLY | {"name", "description", "project_id", "settings", "service_meta"}

_GET = Statement("SELECT * FROM applications WHERE application_id = :application_id")
_LOCK = Statement("SELECT * FROM applications WHERE application_id = :application_id FOR UPDATE")
_PROJECT = Statement("SELECT removed FROM projects WHERE id = :project_id FOR SHARE")
_CREATE = Statement(
    """INSERT INTO applications (name, description, project_id, settings, service_meta, login, secret_data)
    VALUES (:name, :description, :project_id, :settings, :service_meta, :login, :secret_data) RETURNING *"""
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


class Applications:
    def __init__(self, database: Database, desk: Desk, keys: ApplicationKeys, keyring: Keyring) -> None:
        self._database = database
        self._desk = desk
        self._keys = keys
        self._keyring = keyring

    async def handle(self, call: Call) -> dict[str, Any]:
        match call.action("get", "save", "delete"):
            case "get":
                return await self._get(call)
            case "save":
                return await self._save(call)
            case _:
                return await self._delete(call)

    async def tags(self, call: Call) -> dict[str, Any]:
        wanted = call.application_id()
        tags = read_tags(call.required_data().get("tags"), "data.tags")
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.APPLICATION_SERVICE_META)
        row = await self._update(call, wanted, {"service_meta": {"tags": tags}})
        return call.answer(data=_shown(row))

    async def _get(self, call: Call) -> dict[str, Any]:
        wanted = application_id(call.required_data().get("application_id"), "data.application_id")
        standing = await self._desk.standing(call.caller, wanted)
        project_id = standing.application.project_id
        standing.require(Operation.APPLICATION_GET, project_id=project_id, application_id=wanted)
        row = await self._database.row(_GET, application_id=wanted)
        assert row is not None
        shown = _shown(row)
        if call.options.get("full") is True:
            standing.require(Operation.APPLICATION_SAVE, project_id=project_id, application_id=wanted)
            shown |= {"settings": row["settings"], "service_meta": row["service_meta"]}
        return call.answer(data=shown)

    async def _save(self, call: Call) -> dict[str, Any]:
        data = call.required_data()
        given = self._read(call, data)
        if data.get("application_id") in (None, ""):
            return call.answer(data=_shown(await self._create(call, given)))
        wanted = application_id(data["application_id"], "data.application_id")
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.APPLICATION_SAVE)
        if "service_meta" in given:
            standing.require(Operation.APPLICATION_SERVICE_META)
        if given.get("project_id", standing.application.project_id) != standing.application.project_id:
            self._may_move(standing, wanted, given["project_id"])
        return call.answer(data=_shown(await self._update(call, wanted, given)))

    def _read(self, call: Call, data: dict[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        call.ignore_unknown(data, KNOWN)
        if "name" in data:
            given["name"] = kinds.word(data["name"], "name")
        if "description" in data:
            given["description"] = kinds.text(data["description"] or "", "description")
        if "project_id" in data:
            given["project_id"] = kinds.text(data["project_id"] or "", "project_id", 64) or None
        if "settings" in data:
            given["settings"], warnings = read_settings(data["settings"])
            call.warnings.extend(warnings)
        if "service_meta" in data:
            given["service_meta"], warnings = read_service_meta(data["service_meta"])
            call.warnings.extend(warnings)
        return given

    def _may_move(self, standing: Standing, wanted: int, project_id: str | None) -> None:
        """Whoever takes an application somewhere needs the right there too; out of all projects is for root."""
        if wanted == CENTRAL:
            raise Conflict("the central application belongs to no project")
        if project_id is None and not standing.rights.is_root:
            raise Forbidden
        if project_id is not None:
            standing.require(Operation.APPLICATION_CREATE_IN_PROJECT, project_id=project_id)

    async def _create(self, call: Call, given: dict[str, Any]) -> Row:
        if "name" not in given:
            raise Invalid("name: is required")
        standing = await self._desk.standing(call.caller)
        project_id = given.get("project_id")
        operation = Operation.APPLICATION_CREATE_IN_PROJECT if project_id else Operation.APPLICATION_CREATE
        standing.require(operation, project_id=project_id)
        if given.get("service_meta"):
            standing.require(Operation.APPLICATION_SERVICE_META)

        async def work(tx: Transaction) -> Row:
            await _check_project(tx, project_id)
            meta = given.get("service_meta", {})
            row = await tx.row(
                _CREATE,
                name=given["name"],
                description=given.get("description", ""),
                project_id=project_id,
                settings=given.get("settings", {}),
                service_meta=_without_private(meta),
                login=NEW_LOGIN,
                secret_data=NEW_SECRET_DATA,
            )
            assert row is not None
            await self._keep_keys(tx, row["application_id"], meta)
            await self._audit(tx, call, "application.create", None, row)
            return row

        return await self._write(work)

    async def _update(self, call: Call, wanted: int, given: dict[str, Any]) -> Row:
        async def work(tx: Transaction) -> Row:
            old = await tx.row(_LOCK, application_id=wanted)
            assert old is not None
            if old["removed"]:
                raise Forbidden("removed")
            project_id = given.get("project_id", old["project_id"])
            await _check_project(tx, project_id)
            meta = given.get("service_meta", {})
            row = await tx.row(
                _UPDATE,
                application_id=wanted,
                name=given.get("name", old["name"]),
                description=given.get("description", old["description"]),
                project_id=project_id,
                settings=given.get("settings", old["settings"]),
                service_meta=old["service_meta"] | _without_private(meta),
            )
            await self._keep_keys(tx, wanted, meta)
            await self._audit(tx, call, "application.save", old, row)
            return row

        return await self._write(work)

    async def _delete(self, call: Call) -> dict[str, Any]:
        wanted = application_id(call.required_data().get("application_id"), "data.application_id")
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.APPLICATION_DELETE)
        if wanted == CENTRAL:
            raise Conflict("the central application cannot be removed")

        async def work(tx: Transaction) -> None:
            old = await tx.row(_LOCK, application_id=wanted)
            assert old is not None
            await tx.value(_REMOVE, application_id=wanted)
            await self._audit(tx, call, "application.delete", old, {**dict(old), "removed": True})

        await self._database.transaction(work)
        return call.answer()

    async def _keep_keys(self, tx: Transaction, wanted: int, meta: dict[str, Any]) -> None:
        """The private key is sealed and never shown; a usable public key is published and trusted."""
        if "private_key" in meta:
            key = meta["private_key"]
            sealed = self._keyring.seal(place("applications.private_key_sealed", wanted), key) if key else None
            await tx.value(_SET_PRIVATE_KEY, application_id=wanted, sealed=sealed)
        if "public_key" in meta:
            await self._keys.set_from_meta(tx, wanted, meta["public_key"])

    async def _write(self, work: Any) -> Row:
        try:
            return await self._database.transaction(work)
        except Duplicate:
            raise Conflict("name: another application of this project has it") from None

    async def _audit(self, tx: Transaction, call: Call, operation: str, old: Any, new: Any) -> None:
        await audit.write(
            tx,
            call.caller.actor,
            operation,
            str(new["application_id"]),
            _audited(old) if old else None,
            _audited(new),
            project_id=new["project_id"],
            application_id=new["application_id"],
        )


async def _check_project(tx: Transaction, project_id: str | None) -> None:
    if project_id is None:
        return
    removed = await tx.value(_PROJECT, project_id=project_id)
    if removed is None:
        raise Invalid("project_id: there is no such project")
    if removed:
        raise Forbidden("removed")


def _without_private(meta: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in meta.items() if name != "private_key"}


def _shown(row: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {"application_id": row["application_id"], "name": row["name"]}
    if row["description"]:
        shown["description"] = row["description"]
    if row["project_id"]:
        shown["project_id"] = row["project_id"]
    return shown | {"removed": row["removed"]}


def _audited(row: Any) -> dict[str, Any]:
    return _shown(row) | {"settings": row["settings"], "service_meta": row["service_meta"]}
