"""Creates ID tokens and refresh tokens (§2.1), and reads those that clients send back."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from sso.core.algorithms import REFRESH_ALGORITHM
from sso.core.jwt import ACCESS_TOKEN_JWT, InvalidToken, Verifier
from sso.db.clock import DatabaseClock
from sso.keys.keyset import KeySet
from sso.keys.signing_pool import SigningPool
from sso.oauth.clients.profiles import RULES
from sso.oauth.model import IssuedTokens
from sso.oauth.tokens.claims import id_token_claims, sign_in_claims
from sso.oauth.tokens.jwt_access_tokens import access_token_claims

ID_TOKEN, REFRESH_TOKEN = "id_token", "refresh_token"
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type (RFC 8693 section 3)
MAX_EXPIRED_S = 366 * 86400  # how long ago a token that was sent back may have expired


class PresentedRefreshToken(Struct, frozen=True):
    """The contents of a refresh token that this service has signed. It may have expired or been replaced."""

    client_id: str
    grant_id: str
    token_id: str


class IdTokenHint(Struct, frozen=True):
    sub: str
    client_id: str


class TokenIssuer:
    def __init__(
        self, keys: KeySet, signing_pool: SigningPool, issuer: str, id_token_s: int, clock: DatabaseClock
    ) -> None:
        self._keys = keys
        self._signing_pool = signing_pool
        self._issuer = issuer
        self._id_token_s = id_token_s
        self._clock = clock
        self._refresh_verifier = Verifier(typ=REFRESH_TOKEN, issuer=issuer)
        self._id_verifier = Verifier(typ=ID_TOKEN, issuer=issuer)

    async def token_response(
        self, issued: IssuedTokens, access_token: str, scopes: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Returns the successful response of the token endpoint (RFC 6749 section 5.1).

        ``scopes`` are those of the access token and the ID token; none: all of the grant. The refresh token keeps all.
        """
        narrowed = issued._replace(scopes=scopes) if scopes else issued
        response: dict[str, Any] = {"access_token": await self._access_token(narrowed, access_token)}
        if "openid" in narrowed.scopes:
            response["id_token"] = await self._id_token(narrowed)
        response["token_type"] = "DPoP" if issued.dpop_jkt else "Bearer"
        response["expires_in"] = issued.access_exp - issued.now
        if issued.current_token_id is not None:
            response["refresh_token"] = self._refresh_token(issued)
        if scopes:
            response["scope"] = " ".join(scopes)
        return response

    async def exchange_response(self, issued: IssuedTokens, access_token: str, act: Sequence[str]) -> dict[str, Any]:
        """Returns the successful response to a token exchange (RFC 8693 section 2.2.1)."""
        return {
            "access_token": await self._access_token(issued, access_token, act),
            "issued_token_type": ACCESS_TOKEN_TYPE,
            "token_type": "DPoP" if issued.dpop_jkt else "Bearer",
            "expires_in": issued.access_exp - issued.now,
            "scope": " ".join(issued.scopes),
        }

    async def _access_token(self, issued: IssuedTokens, access_token: str, act: Sequence[str] = ()) -> str:
        """Returns the token in the format that the client wants."""
        if issued.access_token_format != "jwt":  # noqa: S105 - a format
            return access_token
        claims = access_token_claims(issued, self._issuer, access_token, act)
        return await self._signing_pool.sign(self._keys.signer(issued.id_alg), claims, ACCESS_TOKEN_JWT)

    async def _id_token(self, issued: IssuedTokens) -> str:
        claims = self._claims(ID_TOKEN, issued, issued.issued_at, issued.issued_at + self._id_token_s)
        if issued.nonce is not None:
            claims["nonce"] = issued.nonce
        claims |= id_token_claims(issued)
        if RULES[issued.profile].is_standard:
            claims |= sign_in_claims(issued.auth, issued.auth_time)
            if issued.sid:
                claims["sid"] = issued.sid
        return await self._signing_pool.sign(self._keys.signer(issued.id_alg), claims)

    def _refresh_token(self, issued: IssuedTokens) -> str:
        """Returns the grant's current refresh token. A retry within the leeway gets an identical token."""
        assert issued.current_token_issued is not None
        assert issued.current_token_exp is not None
        claims = self._claims(REFRESH_TOKEN, issued, issued.current_token_issued, issued.current_token_exp)
        claims |= {"scopes": " ".join(issued.scopes), "jti": f"{issued.grant_id}.{issued.current_token_id}"}
        return self._keys.signer(REFRESH_ALGORITHM).sign(claims)

    def _claims(self, typ: str, issued: IssuedTokens, iat: int, exp: int) -> dict[str, Any]:
        return {
            "typ": typ,
            "iss": self._issuer,
            "aud": [self._issuer, issued.client_id],
            "azp": issued.client_id,
            "sub": issued.user_id,
            "iat": iat,
            "exp": exp,
        }

    def exchanged_id_token(self, user_id: str, now: int, exp: int) -> str:
        """Returns the ID token that a user JWT is exchanged for. It has no client, so aud and azp name this service."""
        claims = {
            "typ": ID_TOKEN,
            "iss": self._issuer,
            "aud": [self._issuer],
            "azp": self._issuer,
            "sub": user_id,
            "iat": now,
            "exp": exp,
        }
        return self._keys.signer().sign(claims)

    def read_refresh_token(self, token: str) -> PresentedRefreshToken | None:
        """Returns None unless this service signed the token. The database checks the expiry, by its own clock."""
        try:
            claims = self._refresh_verifier.verify_own(
                token, self._keys.find_signer, self._clock.now(), expired_for=MAX_EXPIRED_S
            )
            grant_id, _, token_id = claims["jti"].partition(".")
            return PresentedRefreshToken(claims["azp"], grant_id, token_id)
        except (InvalidToken, KeyError, AttributeError):
            return None

    def read_id_token_hint(self, token: str) -> IdTokenHint | None:
        """Returns the user and the client of an ID token, which may have expired.

        Returns None unless this service issued the token to a client.
        """
        try:
            claims = self._id_verifier.verify(token, self._keys.find, self._clock.now(), expired_for=MAX_EXPIRED_S)
            if claims["azp"] == self._issuer:
                return None
            return IdTokenHint(claims["sub"], claims["azp"])
        except (InvalidToken, KeyError):
            return None
