"""Access tokens as JWTs (RFC 9068), for clients that opt in.

The database has a row for every access token, whatever its form, so a JWT is revoked like an opaque token. Its ``jti``
is the digest by which the row is found; it is of no use without the signature.
"""

import base64
from collections.abc import Sequence
from typing import Any

from sso.core.ids import digest
from sso.core.jwt import ACCESS_TOKEN_JWT, InvalidToken, Verifier, looks_like_jwt
from sso.db.clock import DatabaseClock
from sso.keys.keyset import KeySet
from sso.oauth.model import IssuedTokens
from sso.oauth.tokens.claims import act_claim, sign_in_claims

TYP = "access_token"


class AccessTokenDigests:
    """Finds the digest under which an access token is stored."""

    def __init__(self, keys: KeySet, issuer: str, clock: DatabaseClock) -> None:
        self._keys = keys
        self._clock = clock
        self._verifier = Verifier(typ=TYP, issuer=issuer, header_type=ACCESS_TOKEN_JWT)

    def of(self, access_token: str) -> bytes:
        """Returns the digest of an opaque token or of a JWT of this service. Of other texts, one that no token has."""
        if looks_like_jwt(access_token):
            try:
                claims = self._verifier.verify_own(access_token, self._keys.find_signer, self._clock.now())
                return base64.urlsafe_b64decode(claims["jti"] + "=")
            except (InvalidToken, KeyError, TypeError, ValueError):
                pass
        return digest(access_token)


def access_token_claims(
    issued: IssuedTokens, issuer: str, access_token: str, act: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the claims of the JWT in place of an opaque token (RFC 9068 section 2.2)."""
    binding = {"cnf": {"jkt": issued.dpop_jkt}} if issued.dpop_jkt else {}
    return {
        "typ": TYP,
        "iss": issuer,
        "aud": [issuer, *issued.resources],
        "sub": issued.user_id,
        "client_id": issued.client_id,
        "scope": " ".join(issued.scopes),
        "iat": issued.issued_at,
        "exp": issued.access_exp,
        "jti": base64.urlsafe_b64encode(digest(access_token)).rstrip(b"=").decode(),
        **sign_in_claims(issued.auth, issued.auth_time),
        **act_claim(act),
        **binding,
    }
