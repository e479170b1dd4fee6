"""Section ``identity_providers``: records by ``id``. Exports leave their secrets out."""

from dataclasses import dataclass
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.db.row_statements import insert_statement, update_statement
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.input import validators
from sso.state.location import UniqueKeys, error_location, read_records
from sso.state.summary import CREATED, ApplySummary
from sso.upstream.model import CLAIMS, KINDS, PROVIDER_ID, STEAM_ISSUER, IdentityProvider, secret_purpose
from sso.upstream.provider_store import list_providers

SECTION = "identity_providers"
URLS = ("issuer", "authorization_url", "token_url", "userinfo_url")
FLAGS = ("trusted_email", "trusted_second_factor", "keep_tokens", "disabled")
TEXTS = ("name", "client_id")
FIELDS = frozenset(("id", "kind", "client_secret", "scopes", "claims", "position", *URLS, *FLAGS, *TEXTS))
# The subjects of another issuer are other people, so links must not survive a change of these.
FIXED = ("kind", "issuer", "userinfo_url")
REQUIRED = {
    "oidc": ("issuer", "client_id"),
    "oauth2": ("client_id", "authorization_url", "token_url", "userinfo_url"),
    "steam": (),
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "oidc": {"scopes": ["openid", "email", "profile"]},
    "oauth2": {},
    "steam": {"issuer": STEAM_ISSUER, "name": "Steam"},
}
MAX_SCOPES = 32

_LOCK = Statement("SELECT * FROM identity_providers WHERE provider_id = :provider_id FOR UPDATE")


@dataclass(frozen=True)
class IdentityProviderPart:
    location: str
    provider_id: str
    values: dict[str, Any]  # the columns that the document names
    secret: str | None

    def __repr__(self) -> str:
        return f"IdentityProviderPart({self.location})"


def read(value: object) -> list[IdentityProviderPart]:
    parts = []
    unique = UniqueKeys()
    for location, item in read_records(SECTION, value, FIELDS):
        with error_location(location):
            part = read_part(location, item)
        unique.add(f"{location}.id", part.provider_id)
        parts.append(part)
    return parts


def read_part(location: str, item: dict[str, Any]) -> IdentityProviderPart:
    """Reads a record. Raises InvalidInput."""
    provider_id = item.get("id")
    if not isinstance(provider_id, str) or not PROVIDER_ID.fullmatch(provider_id):
        raise InvalidInput("id: must be 1 to 32 characters of a-z, 0-9 and -, without - at the ends")
    values: dict[str, Any] = {}
    if "kind" in item:
        if item["kind"] not in KINDS:
            raise InvalidInput("kind: must be oidc, oauth2 or steam")
        values["kind"] = item["kind"]
    values |= {name: validators.read_word(item[name], name) for name in TEXTS if name in item}
    values |= {name: validators.read_flag(item[name], name) for name in FLAGS if name in item}
    values |= {name: _read_url(item[name], name) for name in URLS if name in item}
    if "scopes" in item:
        values["scopes"] = [
            _read_scope(scope, f"scopes[{index}]")
            for index, scope in enumerate(validators.read_array(item["scopes"], "scopes", MAX_SCOPES))
        ]
    if "claims" in item:
        values["claims"] = _read_claims(item["claims"])
    if "position" in item:
        values["position"] = validators.read_number(item["position"], "position")
    secret = validators.read_word(item["client_secret"], "client_secret", 512) if "client_secret" in item else None
    return IdentityProviderPart(location, provider_id, values, secret)


def _read_url(value: object, where: str) -> str:
    """Returns an address. http for this machine is checked again at each sign-in, when the base URL is known."""
    if value == "":
        return ""
    if not is_outgoing_url(value, allow_http=True) or (where == "issuer" and "?" in str(value)):
        raise InvalidInput(f"{where}: {EXPECTED}")
    return str(value)


def _read_scope(value: object, where: str) -> str:
    scope = validators.read_word(value, where, 128)
    if not scope.isascii() or any(character in ' "\\' for character in scope):
        raise InvalidInput(f"{where}: must not contain spaces, quotes or backslashes")
    return scope


def _read_claims(value: object) -> dict[str, str]:
    claims = validators.read_object(value, "claims")
    for name in claims:
        if name not in CLAIMS:
            raise InvalidInput(f"claims: expected the names {', '.join(CLAIMS)}")
    return {name: validators.read_word(path, f"claims.{name}", 128) for name, path in claims.items()}


async def apply(
    tx: Transaction, actor: AuditActor, keyring: Keyring, summary: ApplySummary, parts: list[IdentityProviderPart]
) -> None:
    for part in parts:
        with summary.at(part.location):
            old = await tx.row(_LOCK, provider_id=part.provider_id)
            if old is None:
                await _create(tx, actor, keyring, part)
                summary.record(part.location, CREATED)
            else:
                summary.record_change(part.location, changed=await _change(tx, actor, keyring, part, dict(old)))


async def lock_provider(tx: Transaction, provider_id: str) -> IdentityProvider | None:
    """Returns a provider, which nothing else changes until the transaction ends; None if there is none."""
    row = await tx.row(_LOCK, provider_id=provider_id) if PROVIDER_ID.fullmatch(provider_id) else None
    return IdentityProvider.from_row(row) if row else None


async def _create(tx: Transaction, actor: AuditActor, keyring: Keyring, part: IdentityProviderPart) -> None:
    kind = part.values.get("kind")
    if kind is None:
        raise InvalidInput("kind: is required for a new provider")
    values = {"name": part.provider_id, **DEFAULTS[kind], **part.values}
    for name in REQUIRED[kind]:
        if not values.get(name):
            raise InvalidInput(f"{name}: is required for the kind {kind}")
    values["issuer"] = values.get("issuer", "").rstrip("/") if kind == "steam" else values.get("issuer", "")
    if part.secret is not None:
        values["secret_sealed"] = keyring.encrypt(secret_purpose(part.provider_id), part.secret)
    statement = insert_statement("identity_providers", ("provider_id", *values))
    await tx.value(statement, provider_id=part.provider_id, **values)
    await trail.write(tx, actor, "identity_provider.create", part.provider_id, None, _for_audit(values))


async def _change(
    tx: Transaction, actor: AuditActor, keyring: Keyring, part: IdentityProviderPart, old: dict[str, Any]
) -> bool:
    changed = {name: value for name, value in part.values.items() if old[name] != value}
    for name in FIXED:
        if name in changed:
            raise PermissionConflict(f"{name}: cannot be changed: remove the provider and its links first")
    purpose = secret_purpose(part.provider_id)
    if part.secret is not None and (
        old["secret_sealed"] is None or keyring.decrypt(purpose, old["secret_sealed"]) != part.secret
    ):
        changed["secret_sealed"] = keyring.encrypt(purpose, part.secret)
    if not changed:
        return False
    statement = update_statement("identity_providers", "provider_id", changed)
    await tx.value(statement, provider_id=part.provider_id, **changed)
    before = {name: old[name] for name in changed}
    await trail.write(tx, actor, "identity_provider.save", part.provider_id, _for_audit(before), _for_audit(changed))
    return True


def _for_audit(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns under their names in the document; the audit trail blanks the secret."""
    return {"client_secret" if name == "secret_sealed" else name: value for name, value in values.items()}


async def export(runner: Runner) -> list[dict[str, Any]]:
    return [
        {
            "id": provider.provider_id,
            "kind": provider.kind,
            "name": provider.name,
            "scopes": list(provider.scopes),
            "position": provider.position,
            **{name: getattr(provider, name) for name in ("client_id", *URLS, *FLAGS) if getattr(provider, name)},
            **({"claims": dict(provider.claims)} if provider.claims else {}),
        }
        for provider in await list_providers(runner)
    ]
