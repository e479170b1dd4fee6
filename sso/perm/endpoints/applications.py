"""POST /api/permissions/application, and its tags (§2.3, §4.4)."""

from typing import Any

from sso.core.encryption import Keyring
from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.credentials.application_keys import ApplicationKeys
from sso.perm.delegation import delegated_write
from sso.perm.endpoints.permission_writes import EndpointWrite, PermissionWrites
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.input import validators
from sso.perm.input.application import read_application_fields
from sso.perm.input.names import read_application_id
from sso.perm.input.tags import read_tags
from sso.perm.request import PermissionRequest
from sso.perm.stores.applications import (
    application_json,
    application_name_conflicts,
    create_application,
    read_application_row,
    remove_application,
    save_application,
)
from sso.perm.stores.locks import lock_application, lock_projects, share_lock_applications

# A save ignores these fields silently: clients send them back as a get returned them.
READ_ONLY = frozenset(("application_id", "removed", "created", "version", "updated_at"))
FIELDS = READ_ONLY | {"name", "description", "project_id", "settings", "service_meta"}
OPTIONS = frozenset(("full",))


class ApplicationEndpoint:
    def __init__(
        self,
        database: Database,
        writes: PermissionWrites,
        authorizer: Authorizer,
        keyring: Keyring,
        keys: ApplicationKeys,
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._keyring = keyring
        self._keys = keys

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = self._read_application_id(request)
        request.warn_unknown(request.options, OPTIONS, ("options",))
        full = validators.read_flag(request.options.get("full", False), ("options", "full"))
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        rights.require_on_target(Operation.APPLICATION_GET, allow_removed=True)
        row = await read_application_row(self._database, application_id)
        assert row is not None
        data = application_json(row)
        if full:
            rights.require_on_target(Operation.APPLICATION_GET_FULL, allow_removed=True)
            data |= {"settings": row["settings"], "service_meta": row["service_meta"]}
        return request.response(data=data)

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        changes, warnings = read_application_fields(data)
        request.warnings.extend(warnings)
        if "application_id" not in data:
            return (await self._create(request, changes)).response(_data)
        application_id = read_application_id(data["application_id"], ("data", "application_id"))
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        if "service_meta" in changes:
            rights.require_on_target(Operation.APPLICATION_SERVICE_META)
        # The right to change service_meta does not include its keys, because a key can sign for the application.
        if changes.keys() != {"service_meta"} or changes["service_meta"].keys() & {"public_key", "private_key"}:
            rights.require_on_target(Operation.APPLICATION_SAVE)
        if _is_move(rights, changes):
            await self._authorize_move(request, rights, application_id, changes["project_id"])
        return (await self._update(request, rights, application_id, changes)).response(_data)

    async def create(self, request: PermissionRequest) -> dict[str, Any]:
        """Creates an application for the management API, with the id ``application_id`` if it was given."""
        data = request.required_data()
        changes, warnings = read_application_fields(data)
        request.warnings.extend(warnings)
        return (await self._create(request, changes, data.get("application_id"))).response(_data)

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = self._read_application_id(request)
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        target = rights.require_on_target(Operation.APPLICATION_DELETE)
        if application_id == CENTRAL_APPLICATION_ID:
            raise PermissionConflict("the central application cannot be removed")
        project_id = target.project_id
        scope = Scope.application(application_id) | Scope.project(project_id)
        write = await self._writes.run(
            request, scope, remove_application, request.caller.actor, application_id, project_id
        )
        return write.response()

    async def save_tags(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        request.warn_unknown(data, frozenset(("tags",)))
        tags = read_tags(data.get("tags"), ("data", "tags"))
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        rights.require_on_target(Operation.APPLICATION_SERVICE_META)
        return (await self._update(request, rights, application_id, {"service_meta": {"tags": tags}})).response(_data)

    def _read_application_id(self, request: PermissionRequest) -> int:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        return read_application_id(data.get("application_id"), ("data", "application_id"))

    async def _create(
        self, request: PermissionRequest, fields: dict[str, Any], application_id: int | None = None
    ) -> EndpointWrite[Row]:
        if "name" not in fields:
            raise FieldError(("name",), "is required")
        rights = await self._authorizer.caller_rights(request.caller)
        project_id = fields.get("project_id")
        operation = Operation.APPLICATION_CREATE_IN_PROJECT if project_id else Operation.APPLICATION_CREATE
        rights.require(operation, project_id=project_id)
        if fields.get("service_meta"):
            rights.require(Operation.APPLICATION_SERVICE_META)
        with application_name_conflicts():
            return await self._writes.run(
                request,
                Scope.project(project_id),
                create_application,
                request.caller.actor,
                self._keyring,
                fields,
                application_id,
            )

    async def _authorize_move(
        self, request: PermissionRequest, rights: CallerRights, application_id: int, new_project: str | None
    ) -> None:
        """A move needs the right to manage applications in both projects, or everywhere if one is no project."""
        if not request.caller.has_factor:
            raise Forbidden("moving an application to another project requires the header Factor")
        for project_id in (rights.target.project_id, new_project):
            if project_id is not None:
                rights.require(Operation.APPLICATION_CREATE_IN_PROJECT, project_id=project_id)
            elif not rights.allow(Operation.APPLICATION_MOVE):
                raise Forbidden("only root moves an application from or to no project")
        if await self._keys.has_file(application_id):
            raise PermissionConflict(
                "the application has a key file, which would be valid in the other project: remove it"
            )

    async def _update(
        self, request: PermissionRequest, rights: CallerRights, application_id: int, changes: dict[str, Any]
    ) -> EndpointWrite[Row]:
        project_id = rights.target.project_id
        scope = Scope.application(application_id) | Scope.project(project_id, changes.get("project_id"))
        keyring = self._keyring
        with application_name_conflicts():
            if project_id is not None and _is_move(rights, changes):
                return await self._writes.run(
                    request, scope, _move_application, request.caller, keyring, application_id, changes, project_id
                )
            return await self._writes.run(
                request, scope, save_application, request.caller.actor, keyring, application_id, changes, project_id
            )


async def _move_application(
    tx: Transaction,
    caller: Caller,
    keyring: Keyring,
    application_id: int,
    changes: dict[str, Any],
    old_project: str,
) -> Row:
    """Save changes that move the application out of ``old_project``."""
    await share_lock_applications(tx, [CENTRAL_APPLICATION_ID])
    await lock_application(tx, application_id, old_project)
    await lock_projects(tx, (old_project, changes["project_id"]))
    async with delegated_write(tx, caller, old_project, [application_id]):
        return await save_application(tx, caller.actor, keyring, application_id, changes, old_project)


def _data(row: Row) -> dict[str, Any]:
    return {"data": application_json(row)}


def _is_move(rights: CallerRights, changes: dict[str, Any]) -> bool:
    """Whether the changes move the application to another project, or out of its project."""
    project_id = rights.target.project_id
    return bool(changes.get("project_id", project_id) != project_id)
