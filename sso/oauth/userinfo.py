"""GET and POST /proxy/oauth/userinfo: the claims about the user that the scopes of an access token allow."""

from typing import Any

from sso.oauth.claims import scope_claims
from sso.oauth.errors import InvalidAccessToken
from sso.oauth.model import AccessToken
from sso.oauth.token_store import TokenStore


async def require_access_token(token_store: TokenStore, access_token: str) -> AccessToken:
    access = await token_store.find_access_token(access_token) if access_token else None
    if access is None:
        raise InvalidAccessToken
    return access


def userinfo_claims(access: AccessToken) -> dict[str, Any]:
    claims: dict[str, Any] = {"status": "ok", "sub": access.user_id, **scope_claims(access)}
    if "trust" in access.scopes:
        claims |= {"email_verified": access.email_verified, "phone_verified": access.phone_verified}
    return claims
