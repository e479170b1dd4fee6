"""Verifies ID tokens of other OpenID providers."""

import hmac

from msgspec import Struct

from sso.core.jwt import SKEW_S, Claims, InvalidToken, check_times, optional_kid_of, signed_claims
from sso.core.keys import PublicKey

MAX_ID_TOKEN_AGE_S = 600  # an ID token was just issued


class IdTokenVerifier(Struct, frozen=True):
    """Verifies ID tokens of another OpenID provider, by the rules of OpenID Connect Core §3.1.3.7."""

    issuer: str
    client_id: str
    max_age_s: int = MAX_ID_TOKEN_AGE_S

    def verify(self, token: str, key: PublicKey, nonce: str | None, now: float) -> Claims:
        """Returns the claims. The key was found by the ``kid`` of the token; ``nonce`` is None if none is known."""
        optional_kid_of(token)
        claims = signed_claims(token, key)
        if claims.get("iss") != self.issuer:
            raise InvalidToken("wrong iss")
        audience = claims.get("aud")
        if audience != self.client_id and not (isinstance(audience, list) and self.client_id in audience):
            raise InvalidToken("wrong aud")
        several = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", None if several else self.client_id) != self.client_id:
            raise InvalidToken("wrong azp")
        check_times(claims, now, SKEW_S)
        if claims["iat"] < now - self.max_age_s:
            raise InvalidToken("bad iat")
        sent = claims.get("nonce")
        if nonce is not None and not (isinstance(sent, str) and hmac.compare_digest(sent.encode(), nonce.encode())):
            raise InvalidToken("wrong nonce")
        return claims
