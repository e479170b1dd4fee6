"""Discovery documents and keys of OpenID providers, cached in each worker."""

from dataclasses import dataclass, field
from typing import Any

import trio

from sso.core.jwk import load_jwk
from sso.core.keys import PublicKey, UnusableKey
from sso.upstream.errors import InvalidAnswer
from sso.upstream.http_client import ProviderAnswer, ProviderClient

METADATA_S = 600.0
KEYS_S = 3600.0
REREAD_KEYS_S = 60.0  # keys are read again for an unknown kid, or a wrong key, at most this often
MAX_KEYS = 100
DOCUMENT_PATH = "/.well-known/openid-configuration"


@dataclass(frozen=True)
class ProviderMetadata:
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str  # "" if there is none
    jwks_uri: str
    auth_methods: tuple[str, ...]  # that the token endpoint accepts
    sends_iss: bool  # RFC 9207
    knows_prompt_login: bool
    read_at: float


@dataclass
class _KeySet:
    keys: dict[str, PublicKey] = field(default_factory=dict)  # by kid; "" for a key without one
    read_at: float = float("-inf")
    lock: trio.Lock = field(default_factory=trio.Lock)

    def find(self, kid: str) -> PublicKey | None:
        """Returns the key with this id. A token without ``kid`` can only mean the only key."""
        if not kid and len(self.keys) == 1:
            return next(iter(self.keys.values()))
        return self.keys.get(kid) if kid else None


class Discovery:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client
        self._metadata: dict[str, ProviderMetadata] = {}  # by issuer
        self._key_sets: dict[str, _KeySet] = {}  # by jwks_uri

    async def metadata(self, issuer: str) -> ProviderMetadata:
        cached = self._metadata.get(issuer)
        if cached and trio.current_time() - cached.read_at < METADATA_S:
            return cached
        answer = await self._client.get(issuer.rstrip("/") + DOCUMENT_PATH)
        metadata = self._metadata[issuer] = parse_metadata(self._client, issuer, json_of(answer))
        return metadata

    async def find_key(self, jwks_uri: str, kid: str) -> PublicKey | None:
        """Returns the provider's key with this id ("": the only key), or None if it does not exist."""
        key_set = self._key_sets.setdefault(jwks_uri, _KeySet())
        async with key_set.lock:
            age = trio.current_time() - key_set.read_at
            if age > KEYS_S or (key_set.find(kid) is None and age > REREAD_KEYS_S):
                await self._read_keys(jwks_uri, key_set)
            return key_set.find(kid)

    async def find_newer_key(self, jwks_uri: str, kid: str, old: PublicKey) -> PublicKey | None:
        """Returns the provider's present key with this id, or None if ``old`` was read within the last minute."""
        key_set = self._key_sets.setdefault(jwks_uri, _KeySet())
        async with key_set.lock:
            if key_set.find(kid) is old and trio.current_time() - key_set.read_at > REREAD_KEYS_S:
                await self._read_keys(jwks_uri, key_set)
            key = key_set.find(kid)
            return None if key is old else key

    async def _read_keys(self, jwks_uri: str, key_set: _KeySet) -> None:
        key_set.keys = parse_keys(json_of(await self._client.get(jwks_uri)))
        key_set.read_at = trio.current_time()


def parse_metadata(client: ProviderClient, issuer: str, document: dict[str, Any]) -> ProviderMetadata:
    """Raises InvalidAnswer if the document belongs to another issuer, or lacks an address."""
    if document.get("issuer") != issuer:
        raise InvalidAnswer("discovery: its issuer is not the configured one")
    required = {
        name: client.check_url(document.get(name), f"discovery: {name}")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
    }
    userinfo = document.get("userinfo_endpoint")
    methods = document.get("token_endpoint_auth_methods_supported")
    prompts = document.get("prompt_values_supported")
    return ProviderMetadata(
        **required,
        userinfo_endpoint=client.check_url(userinfo, "discovery: userinfo_endpoint") if userinfo else "",
        auth_methods=tuple(map(str, methods)) if isinstance(methods, list) else (),
        sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
        knows_prompt_login=isinstance(prompts, list) and "login" in prompts,
        read_at=trio.current_time(),
    )


def json_of(answer: ProviderAnswer) -> dict[str, Any]:
    if answer.status != 200:
        raise InvalidAnswer(f"{answer.url}: status {answer.status}")
    return answer.json()


def parse_keys(document: dict[str, Any]) -> dict[str, PublicKey]:
    """Returns the keys by their ids. Keys of other kinds, such as those for encryption, are left out."""
    jwks = document.get("keys")
    if not isinstance(jwks, list):
        raise InvalidAnswer("jwks_uri: expected a JWK set")
    keys: dict[str, PublicKey] = {}
    for jwk in jwks[:MAX_KEYS]:
        try:
            keys[str(jwk.get("kid", ""))] = load_jwk(jwk)
        except (UnusableKey, AttributeError):
            continue
    return keys
