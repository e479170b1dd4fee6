"""Records of one kind in the management API: their five routes, and what every write of a record has to do.

A resource declares its kind and calls the operations of its records. A write locks the record, checks that the caller
may change it and has read its present version, calls the operation, and checks the changed record again.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct, field
from pydantic import BaseModel

from sso.admin.answers.shape import NO_DATA_ANSWER, UNTYPED, AnswerShape, Shape
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    NoQuery,
    SearchQuery,
    etag,
    sorted_response,
)
from sso.admin.rights import AdminRight
from sso.core.errors import ApiError, Conflict, NotFound
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.sorted_pages import Page
from sso.db.transaction import Transaction
from sso.web.body import SMALL_BODY, BodyLimit

T = TypeVar("T")  # a record as it is stored
Result = TypeVar("Result")


_VERBS = {"list": "list", "create": "create", "get": "get", "change": "update", "delete": "delete"}


class RecordKind(Struct, frozen=True):
    name: str  # in error texts
    path: str
    one: str  # the path of one record
    view: AdminRight
    manage: AdminRight
    new: type[BaseModel] | None = None
    new_example: JsonRecord | None = None
    changes: type[BaseModel] | None = None
    change_example: JsonRecord | None = None
    fixed_fields: Mapping[str, str] = field(default_factory=dict)  # see AdminRoute
    list_query: type[AdminModel] = SearchQuery
    create_query: type[AdminModel] = NoQuery
    change_query: type[AdminModel] = NoQuery
    delete_query: type[AdminModel] = NoQuery
    by_permissions: bool = False  # see AdminRoute
    body_limit: BodyLimit = SMALL_BODY
    # For the OpenAPI document. Those with several values have them by the name of the handler.
    details: Mapping[str, str] = field(default_factory=dict)
    noun: str = ""  # in the ids of operations, such as list_project_members; the name if it is missing
    record: Shape = UNTYPED  # a record in answers
    answers: Mapping[str, AnswerShape] = field(default_factory=dict)  # of handlers that answer with something else

    def routes(self, resource: object) -> tuple[AdminRoute, ...]:
        """Returns the routes of those of the handlers list, create, get, change and delete that the resource has."""
        new: Any = {"body": self.new, "example": self.new_example}
        changes: Any = {"body": self.changes, "example": self.change_example, "fixed_fields": self.fixed_fields}
        rows: tuple[tuple[str, str, str, AdminRight, type[AdminModel], Any], ...] = (
            ("list", "GET", self.path, self.view, self.list_query, {}),
            ("create", "POST", self.path, self.manage, self.create_query, new),
            ("get", "GET", self.one, self.view, NoQuery, {}),
            ("change", "PATCH", self.one, self.manage, self.change_query, changes),
            ("delete", "DELETE", self.one, self.manage, self.delete_query, {}),
        )
        common: Any = {"by_permissions": self.by_permissions, "body_limit": self.body_limit}
        return tuple(
            AdminRoute(method, path, right, handler, query, **self._described(name), **common, **more)
            for name, method, path, right, query, more in rows
            if (handler := getattr(resource, name, None)) is not None
        )

    def _described(self, name: str) -> Any:
        noun = (self.noun or self.name).replace(" ", "_")
        answer = (
            NO_DATA_ANSWER if name == "delete" else AnswerShape(self.record, status=201 if name == "create" else 200)
        )
        return {
            "answer": self.answers.get(name, answer),
            "operation": f"{_VERBS[name]}_{noun}{'s' if name == 'list' else ''}",
            "details": self.details.get(name, ""),
        }


class RecordResource(ABC, Generic[T]):
    kind: ClassVar[RecordKind]
    variable: ClassVar[str]  # in the path of one record

    def __init__(self, database: Database) -> None:
        self.database = database

    def routes(self) -> tuple[AdminRoute, ...]:
        return self.kind.routes(self)

    async def list(self, request: AdminRequest) -> AdminResponse:
        return sorted_response(await self.page(request), self.json)

    async def get(self, request: AdminRequest) -> AdminResponse:
        return self.respond(self.existing(await self.read(self.path_key(request))))

    async def create(self, request: AdminRequest) -> AdminResponse:
        prepared = await self.prepare_new(request)

        async def work(tx: Transaction) -> T:
            record = await self.insert(tx, request, prepared)
            await self.authorize(request, record, tx)
            return record

        return await self.respond_written(request, work, 201, prepared)

    async def change(self, request: AdminRequest) -> AdminResponse:
        prepared = await self.prepare_changes(request)

        async def work(tx: Transaction) -> T:
            before = await self.lock_version(tx, request)
            await self.save(tx, request, before, prepared)
            after = self.existing(await self.lock(tx, self.path_key(request)))
            await self.authorize(request, after, tx)
            self.authorize_change(request, before, after)
            return after

        return await self.respond_written(request, work, 200, prepared)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        async def work(tx: Transaction) -> None:
            await self.remove(tx, request, await self.lock_version(tx, request))

        await self.write(request, work)
        return AdminResponse()

    async def lock_version(self, tx: Transaction, request: AdminRequest) -> T:
        """Returns the locked record if the caller may change it, and has read its present version."""
        record = self.existing(await self.lock(tx, self.path_key(request)))
        await self.authorize(request, record, tx)
        request.check_version(self.version(record))
        return record

    def respond(self, record: T, status: int = 200) -> AdminResponse:
        return AdminResponse({"data": self.json(record)}, status, {"ETag": etag(self.version(record))})

    def existing(self, record: T | None) -> T:
        if record is None:
            raise NotFound(f"{self.kind.name} not found")
        return record

    def path_key(self, request: AdminRequest) -> str:
        return request.path[self.variable]

    # Reading

    @abstractmethod
    async def page(self, request: AdminRequest) -> Page[T]: ...

    @abstractmethod
    async def read(self, key: str) -> T | None: ...

    @abstractmethod
    async def lock(self, tx: Transaction, key: str) -> T | None: ...

    @abstractmethod
    def json(self, record: T) -> JsonRecord: ...

    def version(self, record: T) -> JsonRecord:
        """Returns the fields that the ETag is made of."""
        return self.json(record)

    # Writing

    async def prepare_new(self, request: AdminRequest) -> Any:
        """Returns what `insert` needs. Does what must not run in a transaction."""
        return request.body

    async def prepare_changes(self, request: AdminRequest) -> Any:
        return request.body

    @abstractmethod
    async def insert(self, tx: Transaction, request: AdminRequest, prepared: Any) -> T: ...

    @abstractmethod
    async def save(self, tx: Transaction, request: AdminRequest, record: T, prepared: Any) -> object: ...

    async def remove(self, tx: Transaction, request: AdminRequest, record: T) -> None:
        """Deletes the record. A resource has this, or a handler ``delete`` of its own."""
        raise NotImplementedError

    async def respond_written(
        self, request: AdminRequest, work: Callable[[Transaction], Awaitable[T]], status: int, prepared: Any
    ) -> AdminResponse:
        """Saves the record and returns the response."""
        return self.respond(await self.write(request, work), status)

    def taken(self) -> ApiError:
        """Returns the error if a concurrent request has created a record with the same key."""
        return Conflict()

    async def authorize(self, request: AdminRequest, record: T, tx: Transaction) -> None:
        """Raises Forbidden if the caller may not change the record, or make it what it is."""

    def authorize_change(self, request: AdminRequest, before: T, after: T) -> None:
        """Raises Forbidden if the caller may not make this change."""

    async def write(self, request: AdminRequest, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        try:
            return await self.database.transaction(work)
        except UniqueViolation:
            raise self.taken() from None
