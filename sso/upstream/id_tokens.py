"""Verifies ID tokens with the published keys of their issuer."""

from typing import Any

from sso.core.jwt import InvalidToken, WrongKey, optional_kid_of
from sso.upstream.discovery import Discovery
from sso.upstream.errors import InvalidAnswer
from sso.upstream.id_token_verifier import IdTokenVerifier
from sso.upstream.model import MAX_SUBJECT


class InvalidIdToken(InvalidAnswer):
    """The ID token is not accepted, unlike other answers of the provider that cannot be used."""


async def verify_id_token(
    discovery: Discovery, jwks_uri: str, verifier: IdTokenVerifier, token: str, nonce: str | None, now: float
) -> dict[str, Any]:
    """Returns the claims of a valid ID token, among them a usable ``sub``. Raises InvalidIdToken or UpstreamError."""
    try:
        kid = optional_kid_of(token)
        key = await discovery.find_key(jwks_uri, kid)
        if key is None:
            raise InvalidIdToken("id_token: unknown kid")
        try:
            claims = verifier.verify(token, key, nonce, now)
        except WrongKey:  # the provider may have changed the key under its id
            if (newer := await discovery.find_newer_key(jwks_uri, kid, key)) is None:
                raise
            claims = verifier.verify(token, newer, nonce, now)
    except InvalidToken as error:
        raise InvalidIdToken(f"id_token: {error}") from None
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
        raise InvalidIdToken("id_token: bad sub")
    return claims
