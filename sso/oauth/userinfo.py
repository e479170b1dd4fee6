"""The user behind an access token, as far as its scopes go."""

from typing import Any

from sso.oauth.errors import InvalidAccess
from sso.oauth.grants import Grants
from sso.oauth.model import Access


async def require_access(grants: Grants, access_token: str) -> Access:
    access = await grants.look_up(access_token) if access_token else None
    if access is None:
        raise InvalidAccess
    return access


def claims(access: Access) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": "ok", "sub": access.user_id}
    if "email" in access.scopes:
        shown["email"] = access.login
    if "profile" in access.scopes:
        shown["nickname"] = access.nick
    if "trust" in access.scopes:
        shown |= {"email_verified": access.email_verified, "phone_verified": access.phone_verified}
    return shown
