"""Dynamic client registration (RFC 7591, RFC 7592): clients register themselves, and manage their registration.

It translates metadata to fields of clients; the operations of clients do the rest. A client that registers with a token
of an administrator can be used at once. Without one, it waits until an administrator approves it. If a client changes
what users see or where they are sent, it needs a new approval, whatever it registered with: the registration access
token may be stolen.
"""

from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from sso.audit.trail import AuditActor
from sso.core.brand import CurrentBrand
from sso.core.errors import Conflict
from sso.core.field_errors import FieldError
from sso.core.ids import digest, secret_token
from sso.core.net import Address
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.db.transaction import Row, Transaction
from sso.keys.keyset import KeySet
from sso.oauth.clients.operations import ClientOperations
from sso.oauth.clients.record import ClientChanges, ClientRecord
from sso.oauth.clients.redirect_uris import browser_origin
from sso.oauth.clients.revocation_store import change_client
from sso.oauth.clients.store import lock_client
from sso.oauth.errors import InvalidRegistrationToken, TooManyRegistrations, TooManyWaitingClients
from sso.oauth.registration.metadata import (
    APPROVED_FIELDS,
    ClientMetadata,
    client_changes,
    client_metadata,
    metadata_names,
)
from sso.oauth.registration.names import imitates
from sso.oauth.registration.store import (
    count_waiting,
    is_usable_token,
    list_own_names,
    lock_registered,
    use_token,
)

RegistrationMode = Literal["off", "approved", "token"]
MAX_WAITING = 100  # clients that wait for approval
RETRY_S = 3600
OPEN, DOCUMENT = "open", "metadata_document"  # values of registered_by; with a token: "token:" and its id


class ClientRegistration(Struct, frozen=True):
    database: Database
    operations: ClientOperations
    mode: RegistrationMode
    rate: RateLimiter
    brand: CurrentBrand
    keys: KeySet
    base_url: str

    async def register(self, metadata: ClientMetadata, token: str, address: Address) -> dict[str, Any]:
        """Returns the client information response. Raises FieldError, InvalidRegistrationToken and others."""
        await self.count(address)
        if self.mode == "token" and not await is_usable_token(self.database, token):
            raise InvalidRegistrationToken  # before anything is said about the names of clients
        if metadata.client_id is not None or metadata.client_secret is not None:
            name = "client_id" if metadata.client_id is not None else "client_secret"
            raise FieldError((name,), "expected none: this service chooses it")
        changes = await self.checked_changes(metadata)
        secret = secret_token() if metadata.uses_secret else None
        client_id, access_token = f"r-{secret_token()[:22]}", secret_token()
        record = _record(client_id, changes, secret)
        columns = {"registration_digest": digest(access_token)}
        row = await self.database.transaction(self._create, record, token, AuditActor(address=str(address)), columns)
        return self._information(row, access_token, secret)

    async def read(self, client_id: str, token: str) -> dict[str, Any]:
        return self._information(await self.database.transaction(_registered, client_id, token), token)

    async def change(self, client_id: str, metadata: ClientMetadata, token: str, address: Address) -> dict[str, Any]:
        """Replaces the metadata of the client."""
        await self.count(address)
        await self.database.transaction(_registered, client_id, token)  # before anything is said about the metadata
        changes = await self.checked_changes(metadata)
        actor = AuditActor(address=str(address), client_id=client_id)
        secret: str | None = None

        async def work(tx: Transaction) -> Row:
            nonlocal secret
            client = await _registered(tx, client_id, token)
            self._check_identity(client, metadata)
            needs_secret = metadata.uses_secret and client["secret_sealed"] is None
            secret = secret_token() if needs_secret else None
            return await self.save(tx, actor, client, _with_secret(changes, secret))

        return self._information(await change_client(self.database, client_id, work), token, secret)

    async def delete(self, client_id: str, token: str, address: Address) -> None:
        await self.count(address)

        async def work(tx: Transaction) -> None:
            client = await _registered(tx, client_id, token)
            await self.operations.delete(tx, AuditActor(address=str(address), client_id=client_id), client)

        await change_client(self.database, client_id, work)

    async def count(self, address: Address) -> None:
        if wait_s := await self.rate.add(address):
            raise TooManyRegistrations(wait_s)

    async def checked_changes(self, metadata: ClientMetadata) -> ClientChanges:
        """Returns the fields of the client. Raises FieldError, also if the name imitates one of ours."""
        changes = client_changes(metadata, browser_origin(self.base_url))
        own = await list_own_names(self.database)
        service = [self.brand.name, urlsplit(self.base_url).hostname or ""]
        service += [row["name"] for row in own if row["first_party"]]
        clients = [name for row in own for name in (row["name"], row["client_id"]) if name]
        if changes.name and imitates(changes.name, service, clients):
            raise FieldError(("client_name",), "must differ more from the names of this service and of its clients")
        return changes

    async def add_waiting(
        self, tx: Transaction, record: ClientRecord, actor: AuditActor, columns: dict[str, Any]
    ) -> Row:
        """Creates a client that waits for approval. Raises TooManyWaitingClients."""
        if await count_waiting(tx) >= MAX_WAITING:
            raise TooManyWaitingClients(RETRY_S)
        waiting = record.model_copy(update={"approved": False})
        with metadata_names():
            return await self.operations.create(tx, actor, waiting, registration=columns)

    async def save(self, tx: Transaction, actor: AuditActor, client: Row, changes: ClientChanges) -> Row:
        """Changes a client that the caller has locked. It needs a new approval if users would see something else."""
        if client["disabled"] and client["approved"]:
            raise Conflict("an administrator has disabled the client")
        if any(client[name] != getattr(changes, name) for name in APPROVED_FIELDS):
            if client["approved"] and await count_waiting(tx) >= MAX_WAITING:
                raise TooManyWaitingClients(RETRY_S)
            changes = changes.model_copy(update={"approved": False})
        with metadata_names():
            await self.operations.change(tx, actor, client, changes)
        changed = await lock_client(tx, client["client_id"])
        assert changed is not None  # the transaction holds its lock
        return changed

    async def _create(
        self, tx: Transaction, record: ClientRecord, token: str, actor: AuditActor, columns: dict[str, Any]
    ) -> Row:
        if not token:
            if self.mode != "approved":
                raise InvalidRegistrationToken
            return await self.add_waiting(tx, record, actor, columns | {"registered_by": OPEN})
        token_id = await use_token(tx, token)
        if token_id is None:
            raise InvalidRegistrationToken
        with metadata_names():
            registered = columns | {"registered_by": f"token:{token_id}"}
            return await self.operations.create(tx, actor, record, registration=registered)

    def _check_identity(self, client: Row, metadata: ClientMetadata) -> None:
        """RFC 7592 section 2.2: the client names itself, and cannot choose its secret."""
        if metadata.client_id != client["client_id"]:
            raise FieldError(("client_id",), "must be the id of the client")
        if metadata.client_secret is not None and not self.operations.has_secret(client, metadata.client_secret):
            raise FieldError(("client_secret",), "must be the secret of the client, or missing")

    def _information(self, row: Row, access_token: str, secret: str | None = None) -> dict[str, Any]:
        secrets = {"client_secret": secret, "client_secret_expires_at": 0} if secret else {}
        return {
            **client_metadata(row, self.keys.signer(row["id_alg"]).algorithm),
            **secrets,
            "registration_access_token": access_token,
            "registration_client_uri": f"{self.base_url}/proxy/oauth/register/{row['client_id']}",
        }


async def refuse_client(tx: Transaction, operations: ClientOperations, actor: AuditActor, client: Row) -> None:
    """Deletes a client that waits for approval. The caller has locked it.

    A client with a metadata document would come back at its next use, so it stays, disabled.
    """
    if client["approved"]:
        raise Conflict("the client does not wait for approval")
    if client["registered_by"] == DOCUMENT:
        await operations.change(tx, actor, client, ClientChanges(approved=True, disabled=True))
    else:
        await operations.delete(tx, actor, client)


async def _registered(tx: Transaction, client_id: str, token: str) -> Row:
    client = await lock_registered(tx, client_id, token) if token else None
    if client is None:
        raise InvalidRegistrationToken
    return client


def _record(client_id: str, changes: ClientChanges, secret: str | None) -> ClientRecord:
    fields = changes.model_dump(exclude_none=True) | {"client_id": client_id}
    return ClientRecord.model_validate(fields | ({"client_secret": secret} if secret else {}))


def _with_secret(changes: ClientChanges, secret: str | None) -> ClientChanges:
    return changes.model_copy(update={"client_secret": secret}) if secret else changes
