"""Discovery documents and keys of OpenID providers, cached in each worker."""

from functools import partial
from typing import Any

from msgspec import Struct

from sso.core.jwk import load_jwk
from sso.core.keys import PublicKey, UnusableKey
from sso.upstream.errors import InvalidAnswer
from sso.upstream.http_client import ProviderAnswer, ProviderClient
from sso.upstream.provider_document import ProviderDocument

METADATA_S = 600.0
KEYS_S = 3600.0
REREAD_KEYS_S = 60.0  # keys are read again for an unknown kid, or a wrong key, at most this often
MAX_KEYS = 100
DOCUMENT_PATH = "/.well-known/openid-configuration"


class ProviderMetadata(Struct, frozen=True):
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str  # "" if there is none
    jwks_uri: str
    auth_methods: tuple[str, ...]  # that the token endpoint accepts
    sends_iss: bool  # RFC 9207
    knows_prompt_login: bool


Keys = dict[str, PublicKey]  # by kid; "" for a key without one


class Discovery:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client
        self._metadata: dict[str, ProviderDocument[ProviderMetadata]] = {}  # by issuer
        self._key_sets: dict[str, ProviderDocument[Keys]] = {}  # by jwks_uri

    async def metadata(self, issuer: str) -> ProviderMetadata:
        if issuer not in self._metadata:
            self._metadata[issuer] = ProviderDocument(partial(self._read_metadata, issuer))
        return await self._metadata[issuer].get(METADATA_S)

    async def find_key(self, jwks_uri: str, kid: str) -> PublicKey | None:
        """Returns the provider's key with this id ("": the only key), or None if it does not exist."""
        key_set = self._key_set(jwks_uri)
        key = _find_key(await key_set.get(KEYS_S), kid)
        return _find_key(await key_set.get_newer(REREAD_KEYS_S), kid) if key is None else key

    async def find_newer_key(self, jwks_uri: str, kid: str, old: PublicKey) -> PublicKey | None:
        """Returns the provider's present key with this id, or None if ``old`` was read within the last minute."""
        key_set = self._key_set(jwks_uri)
        key = _find_key(await key_set.get(KEYS_S), kid)
        if key is old:
            key = _find_key(await key_set.get_newer(REREAD_KEYS_S), kid)
        return None if key is old else key

    def _key_set(self, jwks_uri: str) -> ProviderDocument[Keys]:
        if jwks_uri not in self._key_sets:
            self._key_sets[jwks_uri] = ProviderDocument(partial(self._read_keys, jwks_uri))
        return self._key_sets[jwks_uri]

    async def _read_metadata(self, issuer: str) -> ProviderMetadata:
        answer = await self._client.get(issuer.rstrip("/") + DOCUMENT_PATH)
        return parse_metadata(self._client, issuer, json_of(answer))

    async def _read_keys(self, jwks_uri: str) -> Keys:
        return parse_keys(json_of(await self._client.get(jwks_uri)))


def _find_key(keys: Keys, kid: str) -> PublicKey | None:
    """Returns the key with this id. A token without ``kid`` can only mean the only key."""
    if not kid and len(keys) == 1:
        return next(iter(keys.values()))
    return keys.get(kid) if kid else None


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
    )


def json_of(answer: ProviderAnswer) -> dict[str, Any]:
    if answer.status != 200:
        raise InvalidAnswer(f"{answer.url}: status {answer.status}")
    return answer.json()


def parse_keys(document: dict[str, Any]) -> Keys:
    """Returns the keys by their ids. Keys of other kinds, such as those for encryption, are left out."""
    jwks = document.get("keys")
    if not isinstance(jwks, list):
        raise InvalidAnswer("jwks_uri: expected a JWK set")
    keys: Keys = {}
    for jwk in jwks[:MAX_KEYS]:
        try:
            keys[str(jwk.get("kid", ""))] = load_jwk(jwk)
        except (UnusableKey, AttributeError):
            continue
    return keys
