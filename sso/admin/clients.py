"""/api/admin/clients: lists, creates, changes and deletes OAuth clients, and rotates their secrets."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import orjson
from pydantic import Field

from sso.admin.client_protection import require_rights_of_client
from sso.admin.errors import Conflict
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    SearchQuery,
    list_response,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.audit import trail
from sso.core.encryption import Keyring
from sso.core.errors import ApiError, NotFound
from sso.core.ids import secret_token
from sso.core.moments import rfc3339
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.oauth.clients.redirect_uris import match_redirect_uri
from sso.oauth.clients.store import ClientStore, delete_client, finish_rotation, lock_client
from sso.oauth.model import CLIENT_ID, Client, expiry_seconds
from sso.perm.stores.applications import read_application_row
from sso.state.location import DocumentError
from sso.state.sections import clients
from sso.state.sections.clients import ClientChanges, ClientPart
from sso.state.summary import CREATED

CLIENT_ID_TAKEN = "client_id: is used by another client"
PUBLIC_EXPECTED = "public: needs the profile oidc, and neither client_secret nor private_key_jwt"
MAX_SECONDS = 10 * 365 * 86400

_PAGE = Statement(
    """SELECT * FROM oauth_clients WHERE client_id COLLATE "C" > :after
        AND (starts_with(lower(client_id), lower(:search)) OR starts_with(lower(name), lower(:search)))
    ORDER BY client_id COLLATE "C" LIMIT :limit"""
)
_READ = Statement("SELECT * FROM oauth_clients WHERE client_id = :client_id")


class SecretRotation(AdminModel):
    """The body of rotate-secret. Durations are seconds."""

    overlap: Annotated[int, Field(ge=0, le=MAX_SECONDS)] | None = None  # None: until the rotation is finished
    expires_in: Annotated[int, Field(ge=1, le=MAX_SECONDS)] | None = None  # None: the new secret has no end
    finish: bool = False  # ends the old secret; there is no new one


class ClientResource:
    def __init__(self, database: Database, store: ClientStore, keyring: Keyring, *, allow_http: bool) -> None:
        self._database = database
        self._store = store
        self._keyring = keyring
        self._allow_http = allow_http

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: SearchQuery = request.query
        rows = await self._database.rows(_PAGE, search=query.search, after=query.after, limit=query.limit + 1)
        shown = [client_json(row) for row in rows[: query.limit]]
        return list_response(shown, shown[-1]["client_id"] if len(rows) > query.limit else None)

    async def get(self, request: AdminRequest) -> AdminResponse:
        client_id = request.path["client_id"]
        row = await self._database.row(_READ, client_id=client_id) if CLIENT_ID.fullmatch(client_id) else None
        return record_response(client_json(_require(row)))

    async def create(self, request: AdminRequest) -> AdminResponse:
        """Creates a client. The response has the generated secret, which is not shown again."""
        part: ClientPart = request.body
        secret = None
        if part.client_secret is None and not part.public and part.token_endpoint_auth_method not in _WITHOUT_SECRET:
            secret = secret_token()
            part = part.model_copy(update={"client_secret": secret})

        async def work(tx: Transaction) -> Row:
            taken = await lock_client(tx, part.client_id) is not None
            if taken or await self._apply(tx, request, part) != CREATED:  # created by a concurrent request
                raise Conflict(CLIENT_ID_TAKEN)
            row = _require(await lock_client(tx, part.client_id))
            self._check(request, part, row)
            return row

        row = await self._write(work)
        return await self._response(row, 201, secret)

    async def change(self, request: AdminRequest) -> AdminResponse:
        changes: ClientChanges = request.body
        client_id = request.path["client_id"]
        if changes.client_id not in (None, client_id):
            raise ApiError("client_id: cannot be changed")

        async def work(tx: Transaction) -> Row:
            before = _require(await lock_client(tx, client_id))
            require_rights_of_client(request.caller, before)
            request.check_version(client_json(before))
            given = changes.model_dump(exclude_none=True)
            part = ClientPart.model_validate({**given, "client_id": client_id})
            await self._apply(tx, request, part)
            row = _require(await lock_client(tx, client_id))
            self._check(request, part, row)
            return row

        return await self._response(await self._write(work))

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Deletes the client, and revokes everything that it was granted."""

        async def work(tx: Transaction) -> None:
            row = _require(await lock_client(tx, request.path["client_id"]))
            require_rights_of_client(request.caller, row)
            before = client_json(row)
            request.check_version(before)
            await trail.write(tx, request.caller.actor, "client.delete", row["client_id"], before, None)
            await delete_client(tx, row["client_id"])

        await self._database.transaction(work)
        return AdminResponse()

    async def rotate_secret(self, request: AdminRequest) -> AdminResponse:
        """Adds a secret and returns it; the old one stays valid for the overlap. With ``finish``, ends the old one."""
        body: SecretRotation = request.body
        if body.finish and (body.overlap is not None or body.expires_in is not None):
            raise ApiError("finish: excludes overlap and expires_in")
        secret = None if body.finish else secret_token()

        async def work(tx: Transaction) -> Row:
            before = _require(await lock_client(tx, request.path["client_id"]))
            client_id = before["client_id"]
            require_rights_of_client(request.caller, before)
            request.check_version(client_json(before))
            if before["secret_sealed"] is None:
                raise Conflict("the client has no secret: it is public or uses private_key_jwt")
            if secret is None:
                await finish_rotation(tx, client_id)
            else:
                await self._store.add_secret(tx, client_id, secret, body.overlap, body.expires_in)
            row = _require(await lock_client(tx, client_id))
            operation = "client.finish_rotation" if body.finish else "client.rotate_secret"
            changes = [{"secrets": client_json(version)["secrets"]} for version in (before, row)]
            await trail.write(tx, request.caller.actor, operation, client_id, *changes)
            return row

        return await self._response(await self._database.transaction(work), 200, secret)

    async def _apply(self, tx: Transaction, request: AdminRequest, part: ClientPart) -> str:
        return await clients.apply(tx, request.caller.actor, self._keyring, "", part)

    def _check(self, request: AdminRequest, part: ClientPart, row: Row) -> None:
        """Checks a client as it was stored. Raises ApiError, which undoes the change."""
        require_rights_of_client(request.caller, row)
        if part.public and not Client.from_row(row).is_public:
            raise ApiError(PUBLIC_EXPECTED)
        hosts, uris = frozenset(row["redirect_hosts"]), row["redirect_uris"]
        listed = frozenset(uris)  # there may be thousands
        for index, uri in enumerate(uris if part.redirect_uris or part.redirect_hosts else ()):
            result = match_redirect_uri(uri, hosts, listed, allow_http=self._allow_http)
            if isinstance(result, str):
                raise ApiError(f"redirect_uris[{index}]: {result.removeprefix('redirect_uri: ')}")

    async def _write(self, work: Callable[[Transaction], Awaitable[Row]]) -> Row:
        try:
            return await self._database.transaction(work)
        except DocumentError as error:
            raise ApiError(str(error).removeprefix(".")) from None
        except UniqueViolation:  # a concurrent request was faster
            raise Conflict(CLIENT_ID_TAKEN) from None

    async def _response(self, row: Row, status: int = 200, secret: str | None = None) -> AdminResponse:
        """The version is that of the record without the secret, which is in this response only."""
        response = record_response(client_json(row), status)
        members = dict(response.members)
        if secret is not None:
            members["data"] = {**members["data"], "client_secret": secret}
        application_id = row["application_id"]
        if application_id and await read_application_row(self._database, application_id) is None:
            members["warnings"] = [f"application_id: there is no application {application_id} yet"]
        return AdminResponse(members, status, response.headers)


_NEW_CLIENT = {"client_id": "shop", "profile": "oidc", "redirect_uris": ["https://shop.example.com/callback"]}
_FIXED_FIELDS = dict.fromkeys(("secrets", "created"), "")
_WITHOUT_SECRET = ("none", "private_key_jwt")


def _require(row: Row | None) -> Row:
    if row is None:
        raise NotFound("client not found")
    return row


def client_json(row: Row) -> JsonRecord:
    """Returns the client without its secrets. The id of a secret changes with each rotation."""
    return {name: row[name] for name in (*clients.ALWAYS_EXPORTED, *clients.EXPORTED_IF_SET)} | {
        "public": Client.from_row(row).is_public,
        "jwks": orjson.loads(row["jwks"]) if row["jwks"] else None,
        "client_secret_expires_at": expiry_seconds(row["secret_expires"]),
        "secrets": _secrets_json(row),
        "created": rfc3339(row["created"]),
    }


def _secrets_json(row: Row) -> list[dict[str, Any]]:
    columns = (("secret_sealed", "secret_expires"), ("second_sealed", "second_expires"))
    return [
        {
            "id": hashlib.sha256(row[sealed].encode()).hexdigest()[:12],
            "expires_at": expiry_seconds(row[expires]),  # Unix seconds; 0: never
        }
        for sealed, expires in columns
        if row[sealed] is not None
    ]


def client_routes(resource: ClientResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_CLIENTS, AdminRight.MANAGE_CLIENTS
    client = "/clients/<client_id>"
    return (
        AdminRoute("GET", "/clients", view, resource.list, SearchQuery),
        AdminRoute("POST", "/clients", manage, resource.create, body=ClientPart, example=_NEW_CLIENT),
        AdminRoute("GET", client, view, resource.get),
        AdminRoute(
            "PATCH",
            client,
            manage,
            resource.change,
            body=ClientChanges,
            example={"disabled": True},
            fixed_fields=_FIXED_FIELDS,
        ),
        AdminRoute("DELETE", client, manage, resource.delete),
        AdminRoute(
            "POST",
            f"{client}/rotate-secret",
            manage,
            resource.rotate_secret,
            body=SecretRotation,
            summary="Rotate the secret of a client",
            example={"overlap": 604800},
        ),
    )
