"""The endpoints that clients call."""

from quart import Blueprint, Response, request

from sso.keys.keyset import KeySet
from sso.oauth.client_auth import ClientCredentials, bearer_of, client_credentials
from sso.oauth.discovery import configuration
from sso.oauth.errors import InvalidRequest, UnsupportedGrantType
from sso.oauth.revoke import Revocation
from sso.oauth.token_endpoint import TokenEndpoint
from sso.oauth.token_exchange import TokenExchange
from sso.oauth.token_store import TokenStore
from sso.oauth.userinfo import claims, require_access
from sso.web.request import client_address, read_model, text_header
from sso.web.request_model import RequestModel
from sso.web.response import reply

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
# As short as the key set's: an algorithm is announced before the first token is signed with it.
PUBLIC = {"Cache-Control": "public, max-age=10", "Access-Control-Allow-Origin": "*"}


class TokenRequest(RequestModel):
    grant_type: str = ""
    code: str = ""
    redirect_uri: str = ""
    refresh_token: str = ""
    code_verifier: str = ""
    client_id: str = ""
    client_secret: str = ""


class RevokeRequest(RequestModel):
    client_id: str = ""
    client_secret: str = ""
    refresh_token: str = ""
    token: str = ""


def oauth_routes(
    token_endpoint: TokenEndpoint, revocation: Revocation, grants: TokenStore, exchange: TokenExchange
) -> Blueprint:
    routes = Blueprint("oauth", __name__)

    @routes.post("/proxy/oauth/token")
    async def token() -> Response:
        form = await read_model(TokenRequest, require_type=True)
        given = _evidence(form)
        match form.grant_type:
            case "authorization_code":
                _require(code=form.code, redirect_uri=form.redirect_uri)
                answer = await token_endpoint.redeem(given, form.code, form.redirect_uri, form.code_verifier)
            case "refresh_token":
                _require(refresh_token=form.refresh_token)
                answer = await token_endpoint.refresh(given, form.refresh_token, form.redirect_uri)
            case "":
                raise InvalidRequest("grant_type is required")
            case _:
                raise UnsupportedGrantType
        return reply(answer, headers=NO_STORE)

    @routes.post("/proxy/oauth/token/revoke")
    async def revoke() -> Response:
        form = await read_model(RevokeRequest)
        await revocation.revoke(_evidence(form), form.refresh_token, form.token)
        return reply({"status": "ok"}, headers=NO_STORE)

    @routes.route("/proxy/oauth/userinfo", methods=["GET", "POST"])
    async def userinfo() -> Response:
        return reply(claims(await require_access(grants, _bearer())), headers=NO_STORE)

    @routes.post("/proxy/oauth/exchange")
    async def to_id_token() -> Response:
        factor = text_header("Factor")
        return reply(await exchange.to_id_token(_bearer(), client_address(), factor), headers=NO_STORE)

    @routes.post("/proxy/oauth/exchangeToken")
    async def to_user_jwt() -> Response:
        return reply(await exchange.to_user_jwt(_bearer(), text_header("Factor") or ""), headers=NO_STORE)

    return routes


def discovery_routes(keys: KeySet, base_url: str) -> Blueprint:
    routes = Blueprint("discovery", __name__)

    @routes.get("/.well-known/openid-configuration")
    @routes.get("/.well-known/oauth-authorization-server")
    async def discovery() -> Response:
        return reply(configuration(base_url, keys.algorithms()), headers=PUBLIC)

    return routes


def _evidence(form: TokenRequest | RevokeRequest) -> ClientCredentials:
    return client_credentials(request.headers.getlist("Authorization"), form.client_id, form.client_secret)


def _bearer() -> str:
    return bearer_of(request.headers.getlist("Authorization"))


def _require(**fields: str) -> None:
    for name, value in fields.items():
        if not value:
            raise InvalidRequest(f"{name} is required")
