"""The tokens of §2.1, made from what was granted; and the reading of those that come back."""

import time
from dataclasses import dataclass
from typing import Any

from sso.core.jwt import InvalidToken, Verifier
from sso.keys.keyset import KeySet
from sso.keys.signing_pool import SigningPool
from sso.oauth.model import IssuedTokens

ID_TOKEN, REFRESH_TOKEN = "id_token", "refresh_token"
REFRESH_ALGORITHM = "EdDSA"  # nobody but us reads these: the cheapest
HINT_OLD_S = 366 * 86400  # an id_token as a hint says who somebody was, and may be old


@dataclass(frozen=True)
class PresentedRefreshToken:
    """A refresh token of ours, of whatever age: which grant and which of its heads it names."""

    client_id: str
    grant_id: str
    head: str


@dataclass(frozen=True)
class IdTokenHint:
    sub: str
    client_id: str


class TokenIssuer:
    def __init__(self, keys: KeySet, aside: SigningPool, issuer: str, id_s: int) -> None:
        self._keys = keys
        self._aside = aside
        self._issuer = issuer
        self._id_s = id_s
        self._refresh = Verifier(typ=REFRESH_TOKEN, issuer=issuer)
        self._id = Verifier(typ=ID_TOKEN, issuer=issuer)

    async def answer(self, issued: IssuedTokens, access_token: str) -> dict[str, Any]:
        """The success response of the token endpoint."""
        answer = {
            "access_token": access_token,
            "id_token": await self._id_token(issued),
            "token_type": "Bearer",
            "expires_in": issued.access_exp - issued.now,
        }
        if issued.head is not None:
            answer["refresh_token"] = self._refresh_token(issued)
        return answer

    async def _id_token(self, issued: IssuedTokens) -> str:
        claims = self._claims(ID_TOKEN, issued, issued.now, issued.now + self._id_s)
        if issued.nonce is not None:
            claims["nonce"] = issued.nonce
        if "email" in issued.scopes:
            claims["email"] = issued.login
        if "profile" in issued.scopes:
            claims["nickname"] = issued.nick
        if issued.profile == "oidc":
            claims["auth_time"] = issued.auth_time
        return await self._aside.sign(self._keys.signer(issued.id_alg), claims)

    def _refresh_token(self, issued: IssuedTokens) -> str:
        """The same token each time it is made: a retry within the leeway gives no second one."""
        assert issued.head_issued is not None
        assert issued.head_exp is not None
        claims = self._claims(REFRESH_TOKEN, issued, issued.head_issued, issued.head_exp)
        claims |= {"scopes": " ".join(issued.scopes), "jti": f"{issued.grant_id}.{issued.head}"}
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
        """For the holder of a user JWT: no client is involved, so the service stands in its place."""
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

    def read_refresh(self, token: str) -> PresentedRefreshToken | None:
        """None unless we signed it. Whether it is too old is the database's to say, by its own clock."""
        try:
            claims = self._refresh.verify_own(token, self._keys.find_signer, time.time(), expired_for=HINT_OLD_S)
            grant_id, _, head = claims["jti"].partition(".")
            return PresentedRefreshToken(claims["azp"], grant_id, head)
        except (InvalidToken, KeyError, AttributeError):
            return None

    def read_hint(self, token: str) -> IdTokenHint | None:
        """Who an id_token of ours is about, also an expired one; None unless it was made for a client."""
        try:
            claims = self._id.verify(token, self._keys.find, time.time(), expired_for=HINT_OLD_S)
            if claims["azp"] == self._issuer:
                return None
            return IdTokenHint(claims["sub"], claims["azp"])
        except (InvalidToken, KeyError):
            return None
