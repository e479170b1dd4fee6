"""POST /api/permissions/application, and its tags (§2.3, §4.4)."""

from typing import Any

from sso.core.encryption import Keyring
from sso.core.errors import Forbidden
from sso.db.database import Database
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.credentials.application_keys import ApplicationKeys
from sso.perm.delegation import Delegation
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.operations import Operation
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.input import validators
from sso.perm.input.names import read_application_id
from sso.perm.input.service import read_application_fields, read_tags
from sso.perm.request import PermissionRequest
from sso.perm.stores.applications import (
    create_application,
    read_row,
    remove_application,
    save_application,
    shown,
    written,
)
from sso.perm.stores.project_state import lock_projects
from sso.perm.stores.roles import keep_applications, lock_application

# Sent back as get gave them, or owned by other endpoints: a save ignores them silently.
READ_ONLY = frozenset(("application_id", "removed", "created", "version", "updated_at"))
KNOWN = READ_ONLY | {"name", "description", "project_id", "settings", "service_meta"}
OPTIONS = frozenset(("full",))


class ApplicationEndpoint:
    def __init__(self, database: Database, desk: Authorizer, keyring: Keyring, keys: ApplicationKeys) -> None:
        self._database = database
        self._desk = desk
        self._keyring = keyring
        self._keys = keys

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        match call.action("get", "save", "delete"):
            case "get":
                return await self._get(call)
            case "save":
                return await self._save(call)
            case _:
                return await self._delete(call)

    async def tags(self, call: PermissionRequest) -> dict[str, Any]:
        wanted = call.application_id()
        data = call.required_data()
        call.ignore_unknown(data, frozenset(("tags",)))
        tags = read_tags(data.get("tags"), "data.tags")
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.APPLICATION_SERVICE_META)
        row = await self._update(call, standing, wanted, {"service_meta": {"tags": tags}})
        return call.answer(data=shown(row))

    async def _get(self, call: PermissionRequest) -> dict[str, Any]:
        wanted = self._wanted(call)
        call.warnings.extend(validators.unknown(call.options, OPTIONS, "options"))
        full = validators.flag(call.options.get("full", False), "options.full")
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_on_record(Operation.APPLICATION_GET)
        row = await read_row(self._database, wanted)
        assert row is not None
        data = shown(row)
        if full:
            standing.require_on_record(Operation.APPLICATION_SAVE)
            data |= {"settings": row["settings"], "service_meta": row["service_meta"]}
        return call.answer(data=data)

    def _wanted(self, call: PermissionRequest) -> int:
        data = call.required_data()
        call.ignore_unknown(data, KNOWN)
        return read_application_id(data.get("application_id"), "data.application_id")

    async def _save(self, call: PermissionRequest) -> dict[str, Any]:
        data = call.required_data()
        call.ignore_unknown(data, KNOWN)
        given, warnings = read_application_fields(data)
        call.warnings.extend(warnings)
        if "application_id" not in data:
            return call.answer(data=shown(await self._create(call, given)))
        wanted = read_application_id(data["application_id"], "data.application_id")
        standing = await self._desk.standing(call.caller, wanted)
        if "service_meta" in given:
            standing.require_here(Operation.APPLICATION_SERVICE_META)
        # Keys decide who speaks for the application: they are more than the description of a service.
        if given.keys() != {"service_meta"} or given["service_meta"].keys() & {"public_key", "private_key"}:
            standing.require_here(Operation.APPLICATION_SAVE)
        if _moves(standing, given):
            if not call.caller.has_factor:
                raise Forbidden("moving an application to another project needs the header Factor")
            self._may_move(standing, given["project_id"])
            if await self._keys.has_file(wanted):
                raise PermissionConflict(
                    "the application has a key file, which would be valid in the other project: remove it"
                )
        return call.answer(data=shown(await self._update(call, standing, wanted, given)))

    def _may_move(self, standing: CallerRights, project_id: str | None) -> None:
        """A move takes the right to manage applications in both projects. Only root moves an application that has no
        project, or out of all projects."""
        for end in (standing.application.project_id, project_id):
            if end is not None:
                standing.require(Operation.APPLICATION_CREATE_IN_PROJECT, project_id=end)
            elif not standing.rights.is_root:
                raise Forbidden("only root moves an application from or to no project")

    async def _create(self, call: PermissionRequest, given: dict[str, Any]) -> Row:
        if "name" not in given:
            raise InvalidInput("name: is required")
        standing = await self._desk.standing(call.caller)
        project_id = given.get("project_id")
        operation = Operation.APPLICATION_CREATE_IN_PROJECT if project_id else Operation.APPLICATION_CREATE
        standing.require(operation, project_id=project_id)
        if given.get("service_meta"):
            standing.require(Operation.APPLICATION_SERVICE_META)

        async def work(tx: Transaction) -> Row:
            return await create_application(tx, call.caller.actor, self._keyring, given)

        return await written(self._database, work)

    async def _update(self, call: PermissionRequest, standing: CallerRights, wanted: int, given: dict[str, Any]) -> Row:
        judged_in = standing.application.project_id

        async def save(tx: Transaction) -> Row:
            return await save_application(tx, call.caller.actor, self._keyring, wanted, given, judged_in)

        async def work(tx: Transaction) -> Row:
            if judged_in is None or not _moves(standing, given):
                return await save(tx)
            # In the order in which everybody locks: applications, the central one first, then projects.
            await keep_applications(tx, [CENTRAL_APPLICATION_ID])
            await lock_application(tx, wanted, judged_in)
            await lock_projects(tx, (judged_in, given["project_id"]))
            delegation = await Delegation.begin(tx, call.caller, judged_in, [wanted])
            row = await save(tx)
            await delegation.judge()
            return row

        return await written(self._database, work)

    async def _delete(self, call: PermissionRequest) -> dict[str, Any]:
        wanted = self._wanted(call)
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.APPLICATION_DELETE)
        if wanted == CENTRAL_APPLICATION_ID:
            raise PermissionConflict("the central application cannot be removed")
        judged_in = standing.application.project_id
        await self._database.transaction(lambda tx: remove_application(tx, call.caller.actor, wanted, judged_in))
        return call.answer()


def _moves(standing: CallerRights, given: dict[str, Any]) -> bool:
    """Whether a save takes the application to another project, or out of its own."""
    here = standing.application.project_id
    return bool(given.get("project_id", here) != here)
