"""Clients whose id is the address of a document with their metadata (OAuth Client ID Metadata Document).

The document is fetched when a sign-in begins. At the first use, the client is stored and waits for approval, like one
that registers itself without a token. A document that changes is like a client that changes its registration. What is
stored is used by all other endpoints, so a token request causes no request to another host.
"""

from typing import Any

from pydantic import ValidationError

from sso.audit.trail import AuditActor
from sso.core.errors import Conflict
from sso.core.fetched_documents import DocumentUnavailable, FetchedDocument, FetchedDocuments
from sso.core.field_errors import FieldError
from sso.core.net import Address
from sso.core.outgoing_url import EXPECTED
from sso.core.urls import split_url
from sso.db.transaction import Row, Transaction
from sso.oauth.clients.record import ClientChanges, ClientRecord
from sso.oauth.clients.revocation_store import change_client
from sso.oauth.clients.store import ClientStore, RecentClient, lock_client
from sso.oauth.errors import InvalidRedirectUri
from sso.oauth.model import DOCUMENT_ID, Client
from sso.oauth.registration.metadata import ClientMetadata
from sso.oauth.registration.registration import DOCUMENT, ClientRegistration
from sso.oauth.registration.store import count_waiting
from sso.web.request_model import field_error

MAX_BYTES = 5 * 1024
MAX_CHECKED = 1000
_METHODS = ("none", "private_key_jwt")


class MetadataDocuments:
    def __init__(self, clients: ClientStore, registration: ClientRegistration, documents: FetchedDocuments) -> None:
        self._clients = clients
        self._registration = registration
        self._documents = documents
        self._checked: dict[str, tuple[float, Client]] = {}  # the clients that agree with the document of this time

    async def find_client(self, client_id: str, address: Address) -> Client | None:
        """Returns the client as its document describes it now. Raises InvalidRedirectUri if that cannot be used.

        Other clients are returned as they are stored, and so are these unless strangers may register clients.
        """
        stored = await self._clients.get(client_id)
        if self._registration.mode != "approved" or not DOCUMENT_ID.fullmatch(client_id):
            return stored
        if stored and (stored.registered_by != DOCUMENT or (stored.disabled and stored.approved)):
            return stored
        if stored is None:
            await self._registration.count(address)
        try:
            document = await self._fetch(client_id)
            if stored and self._checked.get(client_id) == (document.fetched, stored):
                return stored
            client = await self._save(client_id, stored, _metadata(client_id, document.content), address)
        except DocumentUnavailable as error:
            raise InvalidRedirectUri(f"client_id: the metadata document cannot be used: {error}") from None
        except FieldError as error:
            raise InvalidRedirectUri(f"client_id: the metadata document is not valid: {error.message}") from None
        if len(self._checked) >= MAX_CHECKED:
            self._checked.clear()
        self._checked[client_id] = document.fetched, client
        return client

    def recent(self, client_id: str) -> RecentClient | None:
        """See `ClientStore.recent`. A client with a document must be compared with it."""
        return None if DOCUMENT_ID.fullmatch(client_id) else self._clients.recent(client_id)

    async def _fetch(self, client_id: str) -> FetchedDocument:
        parts = split_url(client_id)
        if parts is None:
            raise DocumentUnavailable(EXPECTED)
        if not parts.path or {".", ".."} & set(parts.path.split("/")):
            raise DocumentUnavailable("the address must have a path, without dot segments")
        return await self._documents.get(client_id)

    async def _save(self, client_id: str, stored: Client | None, metadata: ClientMetadata, address: Address) -> Client:
        changes = await self._registration.checked_changes(metadata)
        actor = AuditActor(address=str(address), client_id=client_id)
        database = self._registration.database

        async def work(tx: Transaction) -> Row:
            return await self._create_or_change(tx, client_id, changes, actor)

        try:
            # A sign-in does not wait for a connection for long work if the document is as before.
            is_long = stored is not None and _may_revoke(stored, changes)
            row = await (change_client(database, client_id, work) if is_long else database.transaction(work))
        except Conflict as error:
            raise InvalidRedirectUri(error.message) from None
        return Client.from_row(row)

    async def _create_or_change(
        self, tx: Transaction, client_id: str, changes: ClientChanges, actor: AuditActor
    ) -> Row:
        client = await lock_client(tx, client_id)
        if client is None:
            await count_waiting(tx)  # from now on, no other request stores a new client
            client = await lock_client(tx, client_id)
        if client is not None:
            return await self._registration.save(tx, actor, client, changes)
        # The id has another form than those that administrators choose, so it is not validated again.
        record = ClientRecord.model_construct(**changes.model_dump() | {"client_id": client_id})
        return await self._registration.add_waiting(tx, record, actor, {"registered_by": DOCUMENT})


def _may_revoke(client: Client, changes: ClientChanges) -> bool:
    """Returns whether the changes may revoke grants: the client gets other redirect URIs or another profile."""
    given = changes.model_dump(include={"redirect_hosts", "redirect_uris", "profile"}, exclude_none=True)
    stored = {name: getattr(client, name) for name in given}
    return any(stored[name] != (tuple(value) if isinstance(value, list) else value) for name, value in given.items())


def _metadata(client_id: str, document: dict[str, Any]) -> ClientMetadata:
    """Returns the metadata of the document. Raises FieldError."""
    if document.get("client_id") != client_id:
        raise FieldError(("client_id",), "must be the address of the document")
    for name in ("client_secret", "client_secret_expires_at"):
        if name in document:
            raise FieldError((name,), "must be missing: the document is public")
    # RFC 7591 has another default, which needs a secret.
    document = {"token_endpoint_auth_method": "none", **document}
    if document["token_endpoint_auth_method"] not in _METHODS:
        raise FieldError(("token_endpoint_auth_method",), f"must be {' or '.join(_METHODS)}")
    try:
        return ClientMetadata.model_validate(document)
    except ValidationError as error:
        raise field_error(error) from None
