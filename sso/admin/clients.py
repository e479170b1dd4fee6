"""/api/admin/clients: lists, creates, changes, refuses and deletes OAuth clients, and rotates their secrets."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from msgspec.structs import replace
from pydantic import Field

from sso.admin.answers.service import CLIENT
from sso.admin.answers.shape import NO_DATA_ANSWER, AnswerShape
from sso.admin.caller import AdminCaller
from sso.admin.record_resource import RecordKind, RecordResource, Result
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, AdminRoute, EntryId, JsonRecord, SortedQuery
from sso.admin.rights import AdminRight
from sso.core.errors import ApiError, Forbidden
from sso.core.field_errors import FieldError
from sso.core.ids import secret_token
from sso.core.path_ids import from_path_id
from sso.db.database import Database
from sso.db.sorted_pages import Page
from sso.db.transaction import Row, Transaction
from sso.oauth.clients.operations import ClientOperations, client_id_taken, needs_secret
from sso.oauth.clients.record import ClientChanges, ClientRecord, client_json
from sso.oauth.clients.redirect_uris import redirect_warnings
from sso.oauth.clients.revocation_store import change_client
from sso.oauth.clients.store import count_grants, find_client_page, lock_client, read_client_row
from sso.oauth.registration.registration import refuse_client
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.applications import read_application_row
from sso.web.request_model import QueryFlag

MAX_SECONDS = 10 * 365 * 86400
MAX_COUNTED_GRANTS = 1001


class SecretRotation(AdminModel):
    """The body of rotate-secret. Durations are seconds."""

    overlap: Annotated[int, Field(ge=0, le=MAX_SECONDS)] | None = None  # None: until the rotation is finished
    expires_in: Annotated[int, Field(ge=1, le=MAX_SECONDS)] | None = None  # None: the new secret has no end
    finish: bool = False  # ends the old secret; there is no new one


class NewClient(ClientRecord):
    undo_of: EntryId | None = None  # the audit entry of a deletion, which is undone: the client has its secrets again


class ClientQuery(SortedQuery):
    sort: Literal["name", "created"] | None = None  # without it: the id
    disabled: QueryFlag | None = None
    approved: QueryFlag | None = None  # 0: those that wait for approval
    registered: QueryFlag | None = None  # 1: those that registered themselves


class ClientResource(RecordResource[Row]):
    variable = "client_id"
    kind = RecordKind(
        "client",
        "/clients",
        "/clients/<client_id>",
        AdminRight.VIEW_CLIENTS,
        AdminRight.MANAGE_CLIENTS,
        NewClient,
        {"client_id": "shop", "profile": "oidc", "redirect_uris": ["https://shop.example.com/callback"]},
        ClientChanges,
        {"disabled": True},
        dict.fromkeys(("secrets", "created", "registered_by"), ""),
        list_query=ClientQuery,
        details={
            "create": "Creates a client. The response has the generated secret, which is not shown again.",
            "delete": "Deletes the client, and revokes everything that it was granted.",
        },
        record=CLIENT,
        answers={"get": AnswerShape(CLIENT, {"grants": int})},
    )

    def __init__(self, database: Database, operations: ClientOperations) -> None:
        super().__init__(database)
        self._operations = operations

    async def get(self, request: AdminRequest) -> AdminResponse:
        """Returns the client, and how many sign-ins of users would end if it were deleted, counted up to 1,001."""
        response = await super().get(request)
        grants = await count_grants(self.database, self.path_key(request), MAX_COUNTED_GRANTS)
        return replace(response, members={**response.members, "grants": grants})

    async def page(self, request: AdminRequest) -> Page[Row]:
        query: ClientQuery = request.query
        filters = {"disabled": query.disabled, "approved": query.approved, "registered": query.registered}
        return await find_client_page(self.database, query.page, **filters)

    def path_key(self, request: AdminRequest) -> str:
        """The id of a client may be the address of its metadata document."""
        return from_path_id(super().path_key(request))

    async def read(self, key: str) -> Row | None:
        return await read_client_row(self.database, key)

    async def lock(self, tx: Transaction, key: str) -> Row | None:
        return await lock_client(tx, key)

    def json(self, record: Row) -> JsonRecord:
        return client_json(record)

    def taken(self) -> ApiError:
        return client_id_taken()

    async def authorize(self, request: AdminRequest, record: Row, tx: Transaction) -> None:
        require_rights_of_client(request.caller, record)

    async def prepare_new(self, request: AdminRequest) -> tuple[NewClient, str | None]:
        """Returns the record, and its secret if that is generated."""
        record: NewClient = request.body
        if record.undo_of is not None or not needs_secret(record):
            return record, None
        secret = secret_token()
        return record.model_copy(update={"client_secret": secret}), secret

    async def prepare_changes(self, request: AdminRequest) -> tuple[ClientChanges, None]:
        changes: ClientChanges = request.body
        if changes.client_id not in (None, self.path_key(request)):
            raise FieldError(("client_id",), "cannot be changed")
        return changes, None

    async def insert(self, tx: Transaction, request: AdminRequest, prepared: tuple[NewClient, str | None]) -> Row:
        return await self._operations.create(tx, request.caller.actor, prepared[0], prepared[0].undo_of)

    async def save(
        self, tx: Transaction, request: AdminRequest, record: Row, prepared: tuple[ClientChanges, None]
    ) -> bool:
        return await self._operations.change(tx, request.caller.actor, record, prepared[0])

    async def remove(self, tx: Transaction, request: AdminRequest, record: Row) -> None:
        await self._operations.delete(tx, request.caller.actor, record)

    async def write(self, request: AdminRequest, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        if self.variable not in request.path:  # a new client
            return await super().write(request, work)
        return await change_client(self.database, self.path_key(request), work)

    async def respond_written(
        self,
        request: AdminRequest,
        work: Callable[[Transaction], Awaitable[Row]],
        status: int,
        prepared: tuple[object, str | None],
    ) -> AdminResponse:
        return await self._respond(await self.write(request, work), status, prepared[1])

    async def _respond(self, record: Row, status: int, secret: str | None) -> AdminResponse:
        """The version is that of the record without the secret, which is in this response only."""
        response, application_id = self.respond(record, status), record["application_id"]
        members = dict(response.members)
        if secret is not None:
            members["data"] = {**members["data"], "client_secret": secret}
        warnings = redirect_warnings(record["redirect_uris"], record["redirect_hosts"])
        if application_id and await read_application_row(self.database, application_id) is None:
            warnings.append(f"application_id: there is no application {application_id} yet")
        return replace(response, members={**members, "warnings": warnings} if warnings else members)

    async def rotate_secret(self, request: AdminRequest) -> AdminResponse:
        """Adds a secret and returns it; the old one stays valid for the overlap. With ``finish``, ends the old one."""
        body: SecretRotation = request.body
        if body.finish and (body.overlap is not None or body.expires_in is not None):
            raise FieldError(("finish",), "excludes overlap and expires_in")
        secret: str | None = None

        async def work(tx: Transaction) -> Row:
            nonlocal secret
            client, actor = await self.lock_version(tx, request), request.caller.actor
            if body.finish:
                await self._operations.finish_rotation(tx, actor, client)
            else:
                secret = await self._operations.rotate_secret(tx, actor, client, body.overlap, body.expires_in)
            return self.existing(await self.lock(tx, client["client_id"]))

        return await self._respond(await self.write(request, work), 200, secret)

    async def refuse(self, request: AdminRequest) -> AdminResponse:
        """Deletes a client that waits for approval; disables it instead if its id is the address of a document."""

        async def work(tx: Transaction) -> None:
            await refuse_client(tx, self._operations, request.caller.actor, await self.lock_version(tx, request))

        await self.write(request, work)
        return AdminResponse()

    def routes(self) -> tuple[AdminRoute, ...]:
        rotation = AdminRoute(
            "POST",
            "/clients/<client_id>/rotate-secret",
            self.kind.manage,
            self.rotate_secret,
            body=SecretRotation,
            answer=AnswerShape(CLIENT),
            summary="Rotate the secret of a client",
            example={"overlap": 604800},
        )
        refusal = AdminRoute(
            "POST", "/clients/<client_id>/refuse", self.kind.manage, self.refuse, answer=NO_DATA_ANSWER
        )
        return (*super().routes(), rotation, refusal)


def require_rights_of_client(caller: AdminCaller, client: Mapping[str, Any]) -> None:
    """Raises Forbidden if the client has, or could get, rights that the caller does not have.

    A person who knows the secret of a client, or chooses its keys and redirect URIs, can act as the client. So a change
    needs the rights that the client has, before and after the change.
    """
    if caller.is_root:
        return
    if client["application_id"] == CENTRAL_APPLICATION_ID:
        raise Forbidden("the role root is required for a client of the central application")
    if client["first_party"]:  # its tokens can be exchanged for JWTs with all rights of the user who signs in
        raise Forbidden("the role root is required for a client with first_party")
    if client["application_id"] and AdminRight.MANAGE_APPLICATIONS not in caller.rights:
        raise Forbidden(f"{AdminRight.MANAGE_APPLICATIONS} is required for a client with application_id")
