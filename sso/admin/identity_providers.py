"""/api/admin/identity-providers: lists, adds, changes and removes the services with which players can sign in."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from sso.admin.caller import AdminCaller
from sso.admin.errors import Conflict
from sso.admin.request import (
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
from sso.bus.bus import Bus
from sso.core.encryption import Keyring
from sso.core.errors import ApiError, Forbidden, NotFound
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.transaction import Transaction
from sso.state.location import DocumentError
from sso.state.sections import identity_providers
from sso.state.sections.identity_providers import FLAGS, URLS, IdentityProviderPart, lock_provider, read_part
from sso.state.summary import ApplySummary
from sso.core.records import RecordModel
from sso.upstream.model import IdentityProvider
from sso.upstream.provider_store import TOPIC, ProviderStore, count_links, delete_provider
from sso.upstream.sign_in import callback_url

ID_TAKEN = "id: is used by another identity provider"
_NEW_PROVIDER = {"id": "steam", "kind": "steam"}
# A provider can sign in as every user who is linked to it, and the other fields decide which service that is, and whom
# it may speak for. So these are the fields that a caller without the role root may change.
HARMLESS_FIELDS = frozenset(("name", "position", "secret_id"))


class ProviderChanges(RecordModel):
    """The fields of an identity provider, each of which may be missing."""

    id: str | None = None
    kind: Literal["oidc", "oauth2", "steam"] | None = None
    name: str | None = None
    issuer: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scopes: list[str] | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    userinfo_url: str | None = None
    claims: dict[str, str] | None = None
    position: int | None = None
    trusted_email: bool | None = None
    trusted_second_factor: bool | None = None
    keep_tokens: bool | None = None
    disabled: bool | None = None


class ProviderPart(ProviderChanges):
    id: str
    kind: Literal["oidc", "oauth2", "steam"]


class ProviderResource:
    def __init__(
        self,
        database: Database,
        store: ProviderStore,
        keyring: Keyring,
        bus: Bus,
        base_url: str,
        *,
        allow_http: bool,
    ) -> None:
        self._database = database
        self._store = store
        self._keyring = keyring
        self._bus = bus
        self._base_url = base_url
        self._allow_http = allow_http

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Returns the providers in the order of their ids."""
        query: SearchQuery = request.query
        providers = sorted(await self._store.list(), key=lambda provider: provider.provider_id)
        following = [
            provider
            for provider in providers
            if provider.provider_id > query.after and query.matches(provider.provider_id, provider.name)
        ]
        shown = [self._json(provider) for provider in following[: query.limit]]
        return list_response(shown, shown[-1]["id"] if len(following) > query.limit else None)

    async def get(self, request: AdminRequest) -> AdminResponse:
        """Returns the provider, and how many users would be affected if it were removed."""
        provider = _require(await self._store.get(request.path["provider_id"]))
        linked, stranded = await count_links(self._database, provider.provider_id)
        response = record_response(self._json(provider))
        users = {"linked": linked, "without_other_sign_in": stranded}
        return AdminResponse({**response.members, "users": users}, 200, response.headers)

    async def create(self, request: AdminRequest) -> AdminResponse:
        require_root(request.caller, "to add an identity provider")
        part = self._read(request.body, request.body.id)

        async def work(tx: Transaction) -> IdentityProvider:
            if await lock_provider(tx, part.provider_id):
                raise Conflict(ID_TAKEN)
            return await self._apply(tx, request, part)

        return record_response(self._json(await self._write(work)), 201)

    async def change(self, request: AdminRequest) -> AdminResponse:
        provider_id = request.path["provider_id"]
        _require(await self._store.get(provider_id))
        if request.body.id not in (None, provider_id):
            raise ApiError("id: cannot be changed")
        part = self._read(request.body, provider_id)

        async def work(tx: Transaction) -> IdentityProvider:
            before = self._json(_require(await lock_provider(tx, provider_id)))
            request.check_version(before)
            provider = await self._apply(tx, request, part)
            after = self._json(provider)
            require_rights_of_provider(request.caller, before, after)
            return provider

        return record_response(self._json(await self._write(work)))

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Removes the provider and all links to it."""

        async def work(tx: Transaction) -> None:
            provider = _require(await lock_provider(tx, request.path["provider_id"]))
            before = self._json(provider)
            request.check_version(before)
            actor = request.caller.actor
            await trail.write(tx, actor, "identity_provider.delete", provider.provider_id, before, None)
            await delete_provider(tx, provider.provider_id)

        await self._database.transaction(work)
        self._bus.publish(TOPIC)
        return AdminResponse()

    def _read(self, body: ProviderChanges, provider_id: str) -> IdentityProviderPart:
        """Raises ApiError."""
        record = body.model_dump(exclude_none=True) | {"id": provider_id}
        if record.get("client_id") == "":  # as a provider without one was read
            del record["client_id"]
        part = read_part("", record)
        for name in URLS:
            if record.get(name) and not is_outgoing_url(record[name], allow_http=self._allow_http):
                raise ApiError(f"{name}: {EXPECTED}")
        return part

    async def _apply(self, tx: Transaction, request: AdminRequest, part: IdentityProviderPart) -> IdentityProvider:
        await identity_providers.apply(tx, request.caller.actor, self._keyring, ApplySummary(), [part])
        return _require(await lock_provider(tx, part.provider_id))

    async def _write(self, work: Callable[[Transaction], Awaitable[IdentityProvider]]) -> IdentityProvider:
        try:
            provider = await self._database.transaction(work)
        except DocumentError as error:
            raise ApiError(str(error).removeprefix(".")) from None
        except UniqueViolation:  # a concurrent request was faster
            raise Conflict(ID_TAKEN) from None
        self._bus.publish(TOPIC)
        return provider

    def _json(self, provider: IdentityProvider) -> JsonRecord:
        """Returns the provider without its secret, whose id changes with it."""
        sealed = provider.secret_sealed
        names: tuple[str, ...] = ("kind", "name", "client_id", "position", *URLS, *FLAGS)
        fields: dict[str, Any] = {name: getattr(provider, name) for name in names}
        return {"id": provider.provider_id, **fields} | {
            "scopes": list(provider.scopes),
            "claims": dict(provider.claims),
            "secret_id": hashlib.sha256(sealed.encode()).hexdigest()[:12] if sealed else None,
            "callback_url": callback_url(self._base_url, provider.provider_id),
        }


def _require(provider: IdentityProvider | None) -> IdentityProvider:
    if provider is None:
        raise NotFound("identity provider not found")
    return provider


def require_rights_of_provider(caller: AdminCaller, before: JsonRecord, after: JsonRecord) -> None:
    """Raises Forbidden unless the caller may make this change."""
    changed = sorted(name for name in after if after[name] != before[name] and name not in HARMLESS_FIELDS)
    if after["disabled"] and "disabled" in changed:  # takes something away, as a deletion does
        changed.remove("disabled")
    if changed:
        require_root(caller, f"to change {changed[0]}")


def require_root(caller: AdminCaller, action: str) -> None:
    if not caller.is_root:
        raise Forbidden(f"the role root is required {action}: the provider signs in its users")


def provider_routes(resource: ProviderResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_CLIENTS, AdminRight.MANAGE_CLIENTS
    provider = "/identity-providers/<provider_id>"
    return (
        AdminRoute("GET", "/identity-providers", view, resource.list, SearchQuery),
        AdminRoute("POST", "/identity-providers", manage, resource.create, body=ProviderPart, example=_NEW_PROVIDER),
        AdminRoute("GET", provider, view, resource.get),
        AdminRoute(
            "PATCH",
            provider,
            manage,
            resource.change,
            body=ProviderChanges,
            example={"position": 1},
            fixed_fields={"secret_id": "", "callback_url": ""},
        ),
        AdminRoute("DELETE", provider, manage, resource.delete),
    )
