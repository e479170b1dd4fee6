"""The user behind an access token, as far as its scopes go."""

from typing import Any

from sso.oauth.errors import InvalidAccessToken
from sso.oauth.model import AccessToken
from sso.oauth.token_store import TokenStore


async def require_access(grants: TokenStore, access_token: str) -> AccessToken:
    access = await grants.look_up(access_token) if access_token else None
    if access is None:
        raise InvalidAccessToken
    return access


def claims(access: AccessToken) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": "ok", "sub": access.user_id}
    if "email" in access.scopes:
        shown["email"] = access.login
    if "profile" in access.scopes:
        shown["nickname"] = access.nick
    if "trust" in access.scopes:
        shown |= {"email_verified": access.email_verified, "phone_verified": access.phone_verified}
    return shown
