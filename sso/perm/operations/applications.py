"""Applications: read, create, change, move, remove (§2.3)."""

from typing import Any

from sso.core.encryption import Keyring
from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError
from sso.core.receiver_urls import ReceiverUrls
from sso.db.database import Database
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.credentials.application_keys import ApplicationKeys
from sso.perm.delegation import delegated_write
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.input.application import source_urls
from sso.perm.operations.writes import OperationContext, OperationResult, PermissionWrites
from sso.perm.stores.applications import (
    application_name_conflicts,
    create_application,
    key_file_conflict,
    read_application_row,
    remove_application,
    restore_application,
    save_application,
)
from sso.perm.stores.deleted_rows import Deletion
from sso.perm.stores.locks import lock_application, lock_projects, share_lock_applications


class ApplicationOperations:
    def __init__(
        self,
        database: Database,
        writes: PermissionWrites,
        authorizer: Authorizer,
        keyring: Keyring,
        keys: ApplicationKeys,
        receiver_urls: ReceiverUrls,
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._keyring = keyring
        self._keys = keys
        self._receiver_urls = receiver_urls

    async def read(self, caller: Caller, application_id: int, *, full: bool) -> Row:
        """Returns the application. Its settings and ``service_meta`` need another right."""
        rights = await self._authorizer.caller_rights(caller, application_id)
        rights.require_on_target(Operation.APPLICATION_GET, allow_removed=True)
        row = await read_application_row(self._database, application_id)
        assert row is not None
        if full:
            rights.require_on_target(Operation.APPLICATION_GET_FULL, allow_removed=True)
        return row

    async def change(
        self, context: OperationContext, application_id: int, changes: dict[str, Any]
    ) -> OperationResult[Row]:
        """Saves the fields in ``changes``; another ``project_id`` moves the application."""
        rights = await self._authorizer.caller_rights(context.caller, application_id)
        if "service_meta" in changes:
            rights.require_on_target(Operation.APPLICATION_SERVICE_META)
        # The right to change service_meta does not include its keys, because a key can sign for the application.
        if changes.keys() != {"service_meta"} or changes["service_meta"].keys() & {"public_key", "private_key"}:
            rights.require_on_target(Operation.APPLICATION_SAVE)
        if _is_move(rights, changes):
            await self._authorize_move(context, rights, application_id, changes["project_id"])
        self._check_sources(changes)
        return await self._update(context, rights, application_id, changes)

    async def remove(self, context: OperationContext, application_id: int) -> OperationResult[None]:
        """Marks the application as removed: nobody has permissions there any more."""
        rights = await self._authorizer.caller_rights(context.caller, application_id)
        target = rights.require_on_target(Operation.APPLICATION_DELETE)
        if application_id == CENTRAL_APPLICATION_ID:
            raise PermissionConflict("the central application cannot be removed")
        project_id = target.project_id
        scope = Scope.application(application_id) | Scope.project(project_id)
        return await self._writes.run(
            context, scope, remove_application, context.caller.actor, application_id, project_id
        )

    async def restore(self, context: OperationContext, application_id: int) -> OperationResult[None]:
        """Restores a removed application. Only root may, because all its users get their permissions back."""
        rights = await self._authorizer.caller_rights(context.caller, application_id)
        target = rights.require_on_target(Operation.APPLICATION_DELETE, allow_removed=True)
        if not rights.is_root:
            raise Forbidden("the role root is required to restore an application: its users get their permissions back")
        scope = Scope.application(application_id) | Scope.project(target.project_id)
        with application_name_conflicts():
            return await self._writes.run(context, scope, _restore, context.caller, application_id)

    async def create(
        self, context: OperationContext, fields: dict[str, Any], application_id: int | None = None
    ) -> OperationResult[Row]:
        """Creates an application, with the id ``application_id`` or the next free one."""
        if "name" not in fields:
            raise FieldError(("name",), "is required")
        rights = await self._authorizer.caller_rights(context.caller)
        project_id = fields.get("project_id")
        operation = Operation.APPLICATION_CREATE_IN_PROJECT if project_id else Operation.APPLICATION_CREATE
        rights.require(operation, project_id=project_id)
        if fields.get("service_meta"):
            rights.require(Operation.APPLICATION_SERVICE_META)
        self._check_sources(fields)
        with application_name_conflicts():
            return await self._writes.run(
                context,
                Scope.project(project_id),
                create_application,
                context.caller.actor,
                self._keyring,
                fields,
                application_id,
            )

    def _check_sources(self, fields: dict[str, Any]) -> None:
        """Raises FieldError if ``settings.gdpr`` has an address that no request may be sent to."""
        for path, url in source_urls(fields.get("settings", {}).get("gdpr", {})):
            if problem := self._receiver_urls.problem_of(url):
                raise FieldError(("settings", "gdpr", *path), problem)

    async def _authorize_move(
        self, context: OperationContext, rights: CallerRights, application_id: int, new_project: str | None
    ) -> None:
        """A move needs the right to manage applications in both projects, or everywhere if one is no project."""
        if not context.caller.has_factor:
            raise Forbidden("moving an application to another project requires the header Factor")
        for project_id in (rights.target.project_id, new_project):
            if project_id is not None:
                rights.require(Operation.APPLICATION_CREATE_IN_PROJECT, project_id=project_id)
            elif not rights.allow(Operation.APPLICATION_MOVE):
                raise Forbidden("only root moves an application from or to no project")
        if await self._keys.has_file(application_id):
            raise key_file_conflict()

    async def _update(
        self, context: OperationContext, rights: CallerRights, application_id: int, changes: dict[str, Any]
    ) -> OperationResult[Row]:
        project_id = rights.target.project_id
        scope = Scope.application(application_id) | Scope.project(project_id, changes.get("project_id"))
        keyring = self._keyring
        with application_name_conflicts():
            if project_id is not None and _is_move(rights, changes):
                return await self._writes.run(
                    context, scope, _move_application, context.caller, keyring, application_id, changes, project_id
                )
            return await self._writes.run(
                context, scope, save_application, context.caller.actor, keyring, application_id, changes, project_id
            )


async def _restore(tx: Transaction, caller: Caller, application_id: int) -> None:
    """The groups and members of its project have the same roles there again, as far as these exist."""
    application = await restore_application(tx, caller.actor, application_id)
    project_id = application["project_id"]
    deletion = await Deletion.find_removal(tx, caller.actor, application_id)
    if project_id is not None and deletion is not None:
        await deletion.restore_actions(project_id, lambda key, _: key == str(application_id))
        await deletion.restore_members(project_id, ["applications", "services"], str(application_id))


async def _move_application(
    tx: Transaction,
    caller: Caller,
    keyring: Keyring,
    application_id: int,
    changes: dict[str, Any],
    old_project: str,
) -> Row:
    """Saves changes that move the application out of ``old_project``."""
    await share_lock_applications(tx, [CENTRAL_APPLICATION_ID])
    await lock_application(tx, application_id, old_project)
    await lock_projects(tx, (old_project, changes["project_id"]))
    async with delegated_write(tx, caller, old_project, [application_id]):
        return await save_application(tx, caller.actor, keyring, application_id, changes, old_project)


def _is_move(rights: CallerRights, changes: dict[str, Any]) -> bool:
    """Returns whether the changes move the application to another project, or out of its project."""
    project_id = rights.target.project_id
    return bool(changes.get("project_id", project_id) != project_id)
