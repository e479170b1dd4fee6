"""Records that permissions are about, in the management API: their routes, and what every read and write of one does.

The operations authorize the caller (`sso/perm/operations`). A resource reads the body, calls the operation and returns
the record.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from sso.admin.permission_access import RecordAccess
from sso.admin.record_resource import RecordKind
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    DeleteQuery,
    JsonRecord,
    WriteQuery,
    record_response,
)
from sso.core.errors import Forbidden, NotFound
from sso.db.database import Database
from sso.db.transaction import Runner, Transaction
from sso.perm.operations.writes import ManagementContext, OperationResult, Precondition
from sso.web.body import SCHEMA_BODY

Key = TypeVar("Key")
T = TypeVar("T")
Operate: TypeAlias = Callable[[ManagementContext], Awaitable[OperationResult[T]]]
ReadRecord: TypeAlias = Callable[[Runner], Awaitable[JsonRecord]]  # raises NotFound

# Callers without the right may have permissions at the record that allow the same.
permission_kind = partial(
    RecordKind,
    by_permissions=True,
    body_limit=SCHEMA_BODY,
    create_query=WriteQuery,
    change_query=WriteQuery,
    delete_query=DeleteQuery,
)


class PermissionResource(ABC, Generic[Key]):
    kind: ClassVar[RecordKind]

    def __init__(self, database: Database, access: RecordAccess) -> None:
        self.database = database
        self.access = access

    def routes(self) -> tuple[AdminRoute, ...]:
        return self.kind.routes(self)

    @abstractmethod
    def key(self, request: AdminRequest) -> Key:
        """Returns the key of the record in the path. Raises NotFound if no record can have it."""

    @abstractmethod
    def visible_by(self, key: Key) -> int | str:
        """Returns the id of the application, project or group by which callers see the record."""

    @abstractmethod
    async def find(self, runner: Runner, key: Key) -> JsonRecord | None: ...

    async def reader(self, request: AdminRequest, key: Key) -> ReadRecord:
        """Returns the function that reads the record as the caller sees it."""

        async def read(runner: Runner) -> JsonRecord:
            record = await self.find(runner, key)
            if record is None:
                raise NotFound(f"{self.kind.name} not found")
            return record

        return read

    async def get(self, request: AdminRequest) -> AdminResponse:
        key = self.key(request)
        await self.access.require(request, self.visible_by(key))
        return record_response(await (await self.reader(request, key))(self.database))

    async def create_record(
        self,
        request: AdminRequest,
        operate: Operate[T],
        key_of: Callable[[T], Key],
        warnings: Sequence[str] = (),
        precondition: Precondition | None = None,
    ) -> AdminResponse:
        """``key_of`` returns the key of what the operation returns. ``warnings`` are those about the input."""
        written = await operate(management_context(request, precondition, warnings))
        if written.is_dry_run:
            return AdminResponse(written.members())
        read = await self.reader(request, key_of(written.result))
        return record_response(await read(self.database), 201, written.context.warnings)

    async def change_record(
        self, request: AdminRequest, operate: Operate[Any], warnings: Sequence[str] = (), *, deleted: bool = False
    ) -> AdminResponse:
        """Changes the record in the path. After a deletion, the response has no record."""
        key = self.key(request)
        read = await self.reader(request, key)
        async with self.access.hiding(request, self.visible_by(key)):
            return await write_record(request, self.database, operate, read, warnings, deleted=deleted)


async def write_record(
    request: AdminRequest,
    database: Database,
    operate: Operate[Any],
    read: ReadRecord,
    warnings: Sequence[str] = (),
    *,
    deleted: bool = False,
    version: Callable[[JsonRecord], JsonRecord] = lambda record: record,
) -> AdminResponse:
    """Changes a record if the caller has read its present version, and returns it as it is then.

    ``version`` returns the fields of the record that the ETag is made of.
    """

    async def precondition(tx: Transaction) -> None:
        request.check_version(version(await read(tx)))

    written = await operate(management_context(request, precondition, warnings))
    if written.is_dry_run or deleted:
        return AdminResponse(written.members())
    record = await read(database)
    return record_response(record, warnings=written.context.warnings, version=version(record))


def management_context(
    request: AdminRequest, precondition: Precondition | None = None, warnings: Sequence[str] = ()
) -> ManagementContext:
    """Returns the context of an operation on permissions that the request asks for."""
    override = getattr(request.body, "override", False) or getattr(request.query, "override", False)
    dry_run = bool(getattr(request.query, "dry_run", False))
    return ManagementContext(request.caller.permissions, dry_run, override, precondition, list(warnings))


def require_root_to_choose(request: AdminRequest, name: str) -> None:
    """Raises Forbidden if a caller without the role root chooses an id or a key, which others may rely on already."""
    if getattr(request.body, name) is not None and not request.caller.is_root:
        raise Forbidden(f"{name}: the role root is required to choose it")
