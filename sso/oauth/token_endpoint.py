"""POST /proxy/oauth/token (RFC 6749 section 3.2): dispatches on the grant type."""

from collections.abc import Awaitable
from typing import Any

from sso.oauth.client_auth import ClientCredentials
from sso.oauth.errors import InvalidRequest, UnsupportedGrantType
from sso.oauth.grant_types.authorization_code import AuthorizationCodeGrant
from sso.oauth.grant_types.refresh_token import RefreshTokenGrant
from sso.web.request_model import RequestModel


class TokenRequest(RequestModel):
    grant_type: str = ""
    code: str = ""
    redirect_uri: str = ""
    refresh_token: str = ""
    code_verifier: str = ""
    client_id: str = ""
    client_secret: str = ""


class TokenEndpoint:
    def __init__(self, authorization_code: AuthorizationCodeGrant, refresh_token: RefreshTokenGrant) -> None:
        self._authorization_code = authorization_code
        self._refresh_token = refresh_token

    def respond(self, request: TokenRequest, credentials: ClientCredentials) -> Awaitable[dict[str, Any]]:
        """Returns the awaitable token response of the grant type. The code or token names the client if the request
        does not."""
        match request.grant_type:
            case "authorization_code":
                _require(code=request.code, redirect_uri=request.redirect_uri)
                return self._authorization_code.redeem(
                    credentials, request.code, request.redirect_uri, request.code_verifier
                )
            case "refresh_token":
                _require(refresh_token=request.refresh_token)
                return self._refresh_token.refresh(credentials, request.refresh_token, request.redirect_uri)
            case "":
                raise InvalidRequest("grant_type is required")
            case _:
                raise UnsupportedGrantType


def _require(**fields: str) -> None:
    for name, value in fields.items():
        if not value:
            raise InvalidRequest(f"{name} is required")
