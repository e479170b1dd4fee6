"""The operations of OAuth clients, for the management API and for documents: the rules of a valid client, the audit
entries, what a change revokes, and the change events. They run in a transaction of the caller.
"""

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from sso.audit import trail
from sso.audit.deleted_secret_store import keep_secrets, take_secrets
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.encryption import Keyring
from sso.core.errors import Conflict
from sso.core.field_errors import FieldError
from sso.core.ids import secret_token
from sso.core.records import Outcome
from sso.db.transaction import Row, Transaction
from sso.oauth.clients import revocation_store, store
from sso.oauth.clients.assertions import stored_jwks
from sso.oauth.clients.attribute_rules import WITHOUT_SECRET, approval_values, check_attributes
from sso.oauth.clients.profiles import RULES
from sso.oauth.clients.record import ClientChanges, ClientRecord, client_json, secrets_json
from sso.oauth.clients.redirect_uris import match_redirect_uri
from sso.oauth.clients.store import lock_client, secret_purpose
from sso.oauth.model import Client, expiry_seconds

# The values of a new client that the checks need.
_NEW: dict[str, Any] = {"profile": "strict", "token_endpoint_auth_method": "", "secret_sealed": None, "jwks": ""}
_NEW |= {"application_id": 0, "resource_server": False, "grant_types": [], "token_exchange": False}
_NEW |= {"backchannel_logout_uri": "", "backchannel_logout_session_required": False}
_NEW |= {"logo_uri": "", "redirect_hosts": [], "redirect_uris": [], "jwks_uri": "", "id_alg": ""}
_NEW |= {"registered_by": "", "approved": True, "disabled": False, "consent": False, "first_party": False}
_NO_SECRETS = {"secret_sealed": None, "second_sealed": None, "secret_expires": None, "second_expires": None}
_SECRET_COLUMNS = {"secret_sealed": "secret_expires", "second_sealed": "second_expires"}
_COLUMNS = ClientChanges.model_fields.keys() - {"client_id", "client_secret", "client_secret_expires_at", "public"}
_REDIRECTS = frozenset(("redirect_hosts", "redirect_uris"))
_AUDIT_NAMES = {"secret_sealed": "client_secret", "second_sealed": None, "registration_digest": None}


class ClientOperations(Struct, frozen=True):
    keyring: Keyring
    allow_http: bool  # for every redirect URI, because this service itself is used without TLS

    async def save(self, tx: Transaction, actor: AuditActor, record: ClientRecord) -> Outcome:
        """Creates the client, or changes it if it exists."""
        client = await lock_client(tx, record.client_id)
        if client is not None:
            return Outcome.CHANGED if await self.change(tx, actor, client, record) else Outcome.UNCHANGED
        await self._create(tx, actor, record)
        return Outcome.CREATED

    async def create(
        self,
        tx: Transaction,
        actor: AuditActor,
        record: ClientRecord,
        undo_of: int | None = None,
        registration: Mapping[str, Any] | None = None,
    ) -> Row:
        """``undo_of``: the audit entry of the deletion that this undoes; the client has its secrets again.

        ``registration``: the columns of a client that registers itself.
        """
        if await lock_client(tx, record.client_id) is not None:
            raise client_id_taken()
        await self._create(tx, actor, record, undo_of, registration)
        return await _locked(tx, record.client_id)

    async def _create(
        self,
        tx: Transaction,
        actor: AuditActor,
        record: ClientRecord,
        undo_of: int | None = None,
        registration: Mapping[str, Any] | None = None,
    ) -> None:
        values = self._values(record.client_id, record, None) | dict(registration or {})
        if undo_of is not None:
            kept = await take_secrets(tx, self.keyring, undo_of, "client.delete", record.client_id)
            values |= self._sealed_secrets(record.client_id, kept)
        self._check_redirect_uris(_NEW | values)
        check_attributes(record, _NEW | values)
        await store.insert_client(tx, record.client_id, values)
        if registration:
            await store.mark_registration_used(tx, record.client_id)
        await trail.write(tx, actor, "client.create", record.client_id, None, _for_audit(values))

    async def change(self, tx: Transaction, actor: AuditActor, client: Row, changes: ClientChanges) -> bool:
        """Changes a client that the caller has locked. Returns False if it has these values already."""
        client_id = client["client_id"]
        values = self._values(client_id, changes, client)
        changed = {name: value for name, value in values.items() if client[name] != value}
        if changed.keys() & _REDIRECTS:
            self._check_redirect_uris({**client, **values})
        check_attributes(changes, {**client, **values})
        if not changed:
            return False
        if "application_id" in changed:
            await revocation_store.remember_application(tx, client_id)
        await store.update_client(tx, client_id, changed)
        before = {name: client[name] for name in changed}
        await trail.write(tx, actor, "client.save", client_id, _for_audit(before), _for_audit(changed))
        if changed.get("secret_sealed"):
            await record_changes(tx, [Change(ChangeType.CLIENT_SECRET_ROTATED, data={"client_id": client_id})])
        if "approved" in changed and client["registered_by"]:
            await store.mark_registration_used(tx, client_id)  # its time begins anew
        # Tokens of an earlier profile may not be bound to a key.
        if changed.get("disabled") or RULES[changed.get("profile", "strict")].binds_refresh_tokens:
            await revocation_store.revoke_grants(tx, client_id)
        elif changed.keys() & _REDIRECTS:
            old, new = Client.from_row(client), Client.from_row({**client, **changed})
            await revocation_store.revoke_grants_at_removed_uris(tx, old, new)
        if changed.get("token_exchange") is False:
            await revocation_store.revoke_exchanged_tokens(tx, client_id)
        return True

    async def delete(self, tx: Transaction, actor: AuditActor, client: Row) -> None:
        """Deletes a client that the caller has locked, and everything that it was granted."""
        entry_id = await trail.write(tx, actor, "client.delete", client["client_id"], client_json(client), None)
        if not client["registered_by"]:  # otherwise it can register again, and an undo would make it one of ours
            await keep_secrets(tx, self.keyring, entry_id, self._secrets(client))
        await store.delete_client(tx, client["client_id"])

    async def rotate_secret(
        self, tx: Transaction, actor: AuditActor, client: Row, overlap_s: float | None, lifetime_s: float | None
    ) -> str:
        """Adds a secret and returns it. The overlap and the lifetime are those of `store.add_secret`."""
        _require_secret(client)
        secret = secret_token()
        await store.add_secret(tx, self.keyring, client, secret, overlap_s, lifetime_s)
        await _audit_secrets(tx, actor, "client.rotate_secret", client)
        return secret

    async def finish_rotation(self, tx: Transaction, actor: AuditActor, client: Row) -> None:
        """Removes all secrets but the newest."""
        _require_secret(client)
        await store.finish_rotation(tx, client["client_id"])
        await _audit_secrets(tx, actor, "client.finish_rotation", client)

    def _values(self, client_id: str, changes: ClientChanges, old: Row | None) -> dict[str, Any]:
        """Returns the columns that the changes set."""
        values = changes.model_dump(exclude_none=True, include=_COLUMNS) | _profile_values(changes, old or _NEW)
        if "grant_types" in values:
            values["grant_types"] = list(dict.fromkeys(values["grant_types"]))
        if changes.client_secret is not None:
            if old is None or not self.has_secret(old, changes.client_secret):
                sealed = self.keyring.encrypt(secret_purpose(client_id), changes.client_secret)
                values |= _NO_SECRETS | {"secret_sealed": sealed}
        elif values.get("token_endpoint_auth_method") in WITHOUT_SECRET:
            values |= _NO_SECRETS
        if changes.client_secret_expires_at is not None:
            values |= _expiry(changes.client_secret_expires_at, old, values)
        if changes.approved is not None:
            values |= approval_values(values, old)
        return values | _key_values(changes)

    def _secrets(self, client: Row) -> dict[str, tuple[str, datetime | None]]:
        """Returns the secrets of a client with their ends, by their columns."""
        return {
            sealed: (self.keyring.decrypt(secret_purpose(client["client_id"], sealed), client[sealed]), client[expires])
            for sealed, expires in _SECRET_COLUMNS.items()
            if client[sealed] is not None
        }

    def _sealed_secrets(self, client_id: str, secrets: dict[str, tuple[str, str | None]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for sealed, (secret, end) in secrets.items():
            values[sealed] = self.keyring.encrypt(secret_purpose(client_id, sealed), secret)
            values[_SECRET_COLUMNS[sealed]] = datetime.fromisoformat(end) if end else None
        return values

    def has_secret(self, client: Row, secret: str) -> bool:
        """Returns whether this is the newest secret of the client."""
        if not client["secret_sealed"]:
            return False
        newest = self.keyring.decrypt(secret_purpose(client["client_id"]), client["secret_sealed"])
        return hmac.compare_digest(newest.encode(), secret.encode())

    def _check_redirect_uris(self, row: dict[str, Any]) -> None:
        """Raises FieldError if the client, which has these values after the change, could not use a redirect URI."""
        hosts, uris = frozenset(row["redirect_hosts"]), row["redirect_uris"]
        listed = frozenset(uris)  # there may be thousands
        for index, uri in enumerate(uris):
            reason = match_redirect_uri(uri, hosts, listed, allow_http=self.allow_http)
            if isinstance(reason, str):
                raise FieldError(("redirect_uris", index), reason)


def needs_secret(record: ClientRecord) -> bool:
    """Returns whether a new client authenticates with a secret and the record has none."""
    demanded = RULES[record.profile or "strict"].attributes.get("token_endpoint_auth_method")
    has_other_method = (demanded or record.token_endpoint_auth_method) in WITHOUT_SECRET
    return record.client_secret is None and not record.public and not has_other_method


def client_id_taken() -> FieldError:
    return FieldError(("client_id",), "is used by another client", status=409)


def _profile_values(changes: ClientChanges, old: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes that the profile demands. Raises FieldError if the changes contradict them."""
    profile = changes.profile or old["profile"]
    rules = RULES[profile]
    for name, demanded in rules.attributes.items():
        if getattr(changes, name) not in (None, demanded):
            expected = demanded if isinstance(demanded, str) else "true"
            raise FieldError((name,), f"must be {expected} with the profile {profile}")
    algorithm = old["id_alg"] if changes.id_alg is None else changes.id_alg
    default = {} if algorithm in rules.signing_algorithms else {"id_alg": rules.signing_algorithms[0]}
    return {**rules.attributes, **default}


def _key_values(changes: ClientChanges) -> dict[str, Any]:
    """Returns the columns of the keys, which are in one place: a new one replaces the other."""
    values: dict[str, Any] = {}
    if changes.jwks is not None:
        values["jwks"] = stored_jwks(changes.jwks)
        if values["jwks"]:
            values["jwks_uri"] = ""
    if changes.jwks_uri is not None:
        if changes.jwks_uri and values.get("jwks"):
            raise FieldError(("jwks_uri",), "excludes jwks: the keys are in one place")
        values["jwks_uri"] = changes.jwks_uri or values.get("jwks_uri", "")
        if changes.jwks_uri:
            values["jwks"] = ""
    return values


def _expiry(expires_at: int, old: Row | None, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the end of the newest secret; nothing if it is the present one, of which an export has whole seconds."""
    if old and "secret_expires" not in values and expires_at == expiry_seconds(old["secret_expires"]):
        return {}
    return {"secret_expires": datetime.fromtimestamp(expires_at, UTC) if expires_at else None}


def _require_secret(client: Row) -> None:
    if client["secret_sealed"] is None:
        raise Conflict("the client has no secret: it is public or uses private_key_jwt")


async def _locked(tx: Transaction, client_id: str) -> Row:
    row = await lock_client(tx, client_id)
    assert row is not None  # the transaction has stored it
    return row


async def _audit_secrets(tx: Transaction, actor: AuditActor, operation: str, before: Row) -> None:
    after = await _locked(tx, before["client_id"])
    entries = [{"secrets": secrets_json(row)} for row in (before, after)]
    await trail.write(tx, actor, operation, before["client_id"], *entries)


def _for_audit(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns under their names in the audit trail, which blanks the secrets."""
    renamed = {_AUDIT_NAMES.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in renamed.items() if name is not None}
