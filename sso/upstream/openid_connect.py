"""Providers of OpenID Connect. Their endpoints and keys come from the discovery document of the issuer."""

from collections.abc import Mapping
from typing import Any

from sso.core.jwt import SKEW_S
from sso.db.clock import DatabaseClock
from sso.upstream.authorization_code import (
    authorization_request,
    code_of,
    fetch_userinfo,
    kept_tokens,
    redeem_code,
)
from sso.upstream.discovery import Discovery, ProviderMetadata
from sso.upstream.errors import InvalidAnswer
from sso.upstream.http_client import ProviderClient
from sso.upstream.id_token_verifier import IdTokenVerifier
from sso.upstream.id_tokens import verify_id_token
from sso.upstream.model import (
    MAX_NAME,
    Attempt,
    IdentityProvider,
    UpstreamIdentity,
    clean_text,
    unchanged_address,
)


class OpenIdConnect:
    def __init__(self, client: ProviderClient, clock: DatabaseClock) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._clock = clock

    async def authorization_url(self, provider: IdentityProvider, attempt: Attempt) -> str:
        metadata = await self._discovery.metadata(provider.issuer)
        more = {"nonce": attempt.nonce}
        if attempt.needs_new_login:
            # Providers that know neither ignore max_age. An unknown prompt would be an error at some of them.
            more |= {"max_age": "0"} | ({"prompt": "login"} if metadata.knows_prompt_login else {})
        return authorization_request(metadata.authorization_endpoint, provider, attempt, **more)

    async def identify(
        self, provider: IdentityProvider, secret: str | None, attempt: Attempt, answer: Mapping[str, str]
    ) -> UpstreamIdentity:
        metadata = await self._discovery.metadata(provider.issuer)
        # RFC 9207: the answer of another provider is not sent to this one.
        if answer.get("iss", None if metadata.sends_iss else provider.issuer) != provider.issuer:
            raise InvalidAnswer("authorization response: wrong iss")
        code = code_of(answer)
        tokens = await redeem_code(
            self._client, metadata.token_endpoint, provider, secret, attempt, code, metadata.auth_methods
        )
        token = tokens.get("id_token")
        if not isinstance(token, str):
            raise InvalidAnswer("token endpoint: expected an id_token")
        verifier = IdTokenVerifier(provider.issuer, provider.client_id)
        now = self._clock.now()
        claims = await verify_id_token(self._discovery, metadata.jwks_uri, verifier, token, attempt.nonce, now)
        if metadata.userinfo_endpoint and not ("email" in claims and "name" in claims):
            claims = await self._with_userinfo(metadata, tokens, claims)
        return UpstreamIdentity(
            subject=claims["sub"],
            name=clean_text(claims.get("name") or claims.get("preferred_username"), MAX_NAME),
            email=unchanged_address(claims.get("email")),
            email_verified=claims.get("email_verified") is True,
            auth_time=_past_moment(claims.get("auth_time"), now),
            tokens=kept_tokens(tokens),
        )

    async def _with_userinfo(
        self, metadata: ProviderMetadata, tokens: Mapping[str, Any], claims: dict[str, Any]
    ) -> dict[str, Any]:
        """Adds the claims of the userinfo endpoint; the ID token, which is signed, wins.

        A verification belongs to the address beside which it stands, so both come from the same document.
        """
        userinfo = await fetch_userinfo(self._client, metadata.userinfo_endpoint, tokens)
        if userinfo.get("sub") != claims["sub"]:
            raise InvalidAnswer("userinfo endpoint: wrong sub")
        address = claims if "email" in claims else userinfo
        return {
            **userinfo,
            **claims,
            "email": address.get("email"),
            "email_verified": address.get("email_verified"),
        }


def _past_moment(value: object, now: float) -> int:
    """Returns the moment in Unix seconds, or 0 if it is none, or one to come: a provider may send milliseconds."""
    return value if type(value) is int and 0 < value <= now + SKEW_S else 0
