"""The operations of identity providers, for the management API and for documents: the rules of a valid provider, and
the audit entries. They run in a transaction of the caller, after which all workers load the providers again.
"""

from typing import Any

from msgspec import Struct

from sso.audit import trail
from sso.audit.deleted_secret_store import keep_secrets, take_secrets
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.field_errors import FieldError
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.core.records import Outcome
from sso.db.transaction import Transaction
from sso.upstream.model import STEAM_APP_ID, IdentityProvider, secret_purpose
from sso.upstream.provider_record import DEFAULTS, URLS, ProviderChanges, ProviderRecord, provider_json
from sso.upstream.provider_store import TOPIC, delete_provider, insert_provider, lock_provider, update_provider

# The subjects of another issuer are other people, so links must not survive a change of these.
FIXED = ("kind", "issuer", "userinfo_url")
REQUIRED = {
    "oidc": ("issuer", "client_id"),
    "oauth2": ("client_id", "authorization_url", "token_url", "userinfo_url"),
    "steam": (),
    "steam_ticket": ("client_id",),
    "google_play": ("client_id",),
    "game_center": ("client_id",),
    "oidc_ticket": ("issuer", "client_id"),
}
_COLUMNS = ProviderChanges.model_fields.keys() - {"id", "client_secret"}


class ProviderOperations(Struct, frozen=True):
    keyring: Keyring
    allow_http: bool  # for addresses of this machine, because this service itself is used without TLS

    async def save(self, tx: Transaction, actor: AuditActor, record: ProviderRecord) -> Outcome:
        """Creates the provider, or changes it if it exists."""
        provider = await lock_provider(tx, record.id)
        if provider is not None:
            return Outcome.CHANGED if await self.change(tx, actor, provider, record) else Outcome.UNCHANGED
        await self._create(tx, actor, record)
        return Outcome.CREATED

    async def create(
        self, tx: Transaction, actor: AuditActor, record: ProviderRecord, undo_of: int | None = None
    ) -> IdentityProvider:
        """``undo_of``: the audit entry of the deletion that this undoes; the provider has its secret again."""
        if await lock_provider(tx, record.id) is not None:
            raise provider_id_taken()
        if undo_of is not None:
            kept = await take_secrets(tx, self.keyring, undo_of, "identity_provider.delete", record.id)
            record = record.model_copy(update=kept)
        await self._create(tx, actor, record)
        return await _locked(tx, record.id)

    async def _create(self, tx: Transaction, actor: AuditActor, record: ProviderRecord) -> None:
        if record.kind is None:
            raise FieldError(("kind",), "is required for a new provider")
        values = {"name": record.id, **DEFAULTS[record.kind], **_trust(record), **self._values(record)}
        for name in REQUIRED[record.kind]:
            if not values.get(name):
                raise FieldError((name,), f"is required for the kind {record.kind}")
        if record.kind in ("steam", "steam_ticket"):
            values["issuer"] = values["issuer"].rstrip("/")
        _check_ticket_fields(record.kind, values)
        if record.client_secret is not None:
            values["secret_sealed"] = self.keyring.encrypt(secret_purpose(record.id), record.client_secret)
        await insert_provider(tx, record.id, values)
        tx.publish_after_commit(TOPIC)
        await trail.write(tx, actor, "identity_provider.create", record.id, None, _for_audit(values))

    async def change(
        self, tx: Transaction, actor: AuditActor, provider: IdentityProvider, changes: ProviderChanges
    ) -> bool:
        """Changes a provider that the caller has locked. Returns False if it has these values already."""
        provider_id, old = provider.provider_id, provider_json(provider)
        changed = {name: value for name, value in self._values(changes).items() if old[name] != value}
        for name in FIXED:
            if name in changed:
                raise FieldError((name,), "cannot be changed: remove the provider and its links first")
        _check_ticket_fields(provider.kind, changed)
        before = {name: old[name] for name in changed}
        if changes.client_secret is not None and not self._has_secret(provider, changes.client_secret):
            changed["secret_sealed"] = self.keyring.encrypt(secret_purpose(provider_id), changes.client_secret)
            before["secret_sealed"] = provider.secret_sealed
        if not changed:
            return False
        await update_provider(tx, provider_id, changed)
        tx.publish_after_commit(TOPIC)
        await trail.write(tx, actor, "identity_provider.save", provider_id, _for_audit(before), _for_audit(changed))
        return True

    async def delete(self, tx: Transaction, actor: AuditActor, provider: IdentityProvider) -> None:
        """Deletes a provider that the caller has locked, and all links of users to it. An undo needs its secret."""
        provider_id, before = provider.provider_id, provider_json(provider)
        entry_id = await trail.write(tx, actor, "identity_provider.delete", provider_id, before, None)
        if provider.secret_sealed is not None:
            secret = self.keyring.decrypt(secret_purpose(provider_id), provider.secret_sealed)
            await keep_secrets(tx, self.keyring, entry_id, {"client_secret": secret})
        await delete_provider(tx, provider_id)
        tx.publish_after_commit(TOPIC)

    def _values(self, changes: ProviderChanges) -> dict[str, Any]:
        """Returns the columns that the changes set, without the secret. Raises FieldError."""
        values = changes.model_dump(exclude_none=True, include=_COLUMNS)
        if not values.get("client_id", "-"):  # as a provider without one was read
            del values["client_id"]
        for name in URLS:
            if values.get(name) and not is_outgoing_url(values[name], allow_http=self.allow_http):
                raise FieldError((name,), EXPECTED)
        return values

    def _has_secret(self, provider: IdentityProvider, secret: str) -> bool:
        sealed = provider.secret_sealed
        return sealed is not None and self.keyring.decrypt(secret_purpose(provider.provider_id), sealed) == secret


def _trust(record: ProviderRecord) -> dict[str, bool]:
    """An OAuth 2.0 provider is trusted for addresses if the record says which member tells that one is verified."""
    return {"trusted_email": True} if record.kind == "oauth2" and "email_verified" in (record.claims or ()) else {}


def _check_ticket_fields(kind: str, values: dict[str, Any]) -> None:
    if kind == "steam_ticket" and not STEAM_APP_ID.fullmatch(values.get("client_id", "1")):
        raise FieldError(("client_id",), "expected the App ID of the game at Steam, a number")
    if "max_age" in DEFAULTS[kind] and values.get("max_age") == 0:
        raise FieldError(("max_age",), "must be at least 1 second")


def provider_id_taken() -> FieldError:
    return FieldError(("id",), "is used by another identity provider", status=409)


async def _locked(tx: Transaction, provider_id: str) -> IdentityProvider:
    provider = await lock_provider(tx, provider_id)
    assert provider is not None  # the transaction has stored it
    return provider


def _for_audit(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns under their names in the document; the audit trail blanks the secret."""
    return {"client_secret" if name == "secret_sealed" else name: value for name, value in values.items()}
