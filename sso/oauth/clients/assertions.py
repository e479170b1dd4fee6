"""Client authentication with private_key_jwt (RFC 7523, OpenID Connect Core section 9)."""

from functools import partial
from typing import Any

import orjson

from sso.core.jwks import read_jwks
from sso.core.jwt import SKEW_S, Claims, InvalidToken, signed_claims, unverified_parts
from sso.core.net import Address
from sso.core.signature_verification import SignatureVerificationPool
from sso.db.database import Database
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.client_keys import ClientKeys
from sso.oauth.clients.store import ClientStore
from sso.oauth.errors import InvalidClient, InvalidRequest
from sso.oauth.model import CLIENT_ID, Client
from sso.oauth.one_time_store import use_jti

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
MAX_LIFETIME_S = 3600
MAX_LENGTH = 4096  # an assertion is parsed before it is verified, to find the client
MAX_JTI = 256
METHOD = "private_key_jwt"
TOKEN_PATH = "/proxy/oauth/token"  # noqa: S105 - a path


class ClientAssertions:
    def __init__(
        self,
        clients: ClientStore,
        keys: ClientKeys,
        database: Database,
        verifications: SignatureVerificationPool,
        issuer: str,
    ) -> None:
        self._keys = keys
        self._clients = clients
        self._database = database
        self._verifications = verifications
        self._issuer = issuer

    async def verify(
        self, assertion_type: str, assertion: str, client_id: str, address: Address, path: str = TOKEN_PATH
    ) -> ClientCredentials:
        """Returns the credentials of the client that signed the assertion, which is used up. Raises InvalidClient.

        ``path`` belongs to the endpoint, whose address the assertion may have as its audience.
        """
        if assertion_type != ASSERTION_TYPE:
            raise InvalidRequest(f"client_assertion_type: expected {ASSERTION_TYPE}")
        try:
            kid, claims = unverified_parts(assertion, MAX_LENGTH)
            client = await self._find_client(claims.get("sub"), client_id)
            key, algorithms = await self._keys.find(client, kid)
            algorithms = tuple(name for name in algorithms if name in client.rules.algorithms)
            verify = partial(signed_claims, assertion, key, algorithms=algorithms)
            await self._check(await self._verifications.run(address, key, verify), client, path)
        except InvalidToken:
            raise InvalidClient from None
        return ClientCredentials(client.client_id, verified_keys=client.key_source)

    async def _find_client(self, subject: Any, client_id: str) -> Client:
        if not isinstance(subject, str) or not CLIENT_ID.fullmatch(subject) or client_id not in ("", subject):
            raise InvalidToken("bad sub")
        client = await self._clients.get(subject)
        if client is None or client.disabled or client.token_endpoint_auth_method != METHOD:
            raise InvalidToken("unknown client")
        return client

    async def _check(self, claims: Claims, client: Client, path: str) -> None:
        now, client_id = self._database.clock.now(), client.client_id
        exp, jti = claims.get("exp"), claims.get("jti")
        if claims.get("iss") != client_id:
            raise InvalidToken("bad iss")
        if not self._is_audience(claims.get("aud"), client, path):
            raise InvalidToken("bad aud")
        if type(exp) is not int or not now < exp <= now + MAX_LIFETIME_S + SKEW_S:
            raise InvalidToken("bad exp")
        for name in ("iat", "nbf"):
            if name in claims and (type(claims[name]) is not int or not 0 <= claims[name] <= min(now + SKEW_S, exp)):
                raise InvalidToken(f"bad {name}")
        if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI:
            raise InvalidToken("bad jti")
        if not await use_jti(self._database, f"{METHOD} {client_id} {jti}", exp + SKEW_S):
            raise InvalidToken("used before")

    def _is_audience(self, audience: Any, client: Client, path: str) -> bool:
        if client.rules.only_issuer_as_audience:
            return bool(audience == self._issuer)
        audiences = audience if isinstance(audience, list) else [audience]
        accepted = {self._issuer, self._issuer + TOKEN_PATH, self._issuer + path}
        return bool(audiences) and all(isinstance(item, str) and item in accepted for item in audiences)


def stored_jwks(value: dict[str, Any]) -> str:
    """Returns a JWK set as it is stored, "" for one without keys. Raises UnusableKey if a key is not accepted."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode() if read_jwks(value) else ""
