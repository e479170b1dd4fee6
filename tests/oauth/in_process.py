"""An OAuth client without a server: it calls the operations in the process of the test."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from quart.typing import TestClientProtocol

from sso.accounts.authentication_context import by_password
from sso.accounts.bans.operations import BanOperations, NewBan
from sso.app import build_app
from sso.audit.trail import AuditActor
from sso.core.ids import secret_token
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.health import Health
from sso.oauth.authorization.request import Parameters
from sso.oauth.authorization.response import RedirectTo
from sso.oauth.clients.authentication import ClientCredentials, sha1_bearer
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.model import TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof
from sso.services import Services
from sso.telemetry.metrics import Metrics
from sso.web.client_address import LOCAL
from tests.kit.builders import PASSWORD, add_user
from tests.kit.open_services import save_accounts

SECRET = "a-secret-of-the-shop"
URI = "https://shop.example.com/cb"
BEARER_ONLY = ClientCredentials(bearer=sha1_bearer(URI, SECRET).decode())  # the request names no client
CREDENTIALS = ClientCredentials("shop", bearer=BEARER_ONLY.bearer)
WRONG_CREDENTIALS = ClientCredentials("shop", secrets=("another secret",))
_USERS = Statement("SELECT user_id FROM users")


async def apply_client(services: Services, **fields: Any) -> None:
    """Creates or changes the client "shop". A field that is None is left out."""
    client = {"client_id": "shop", "client_secret": SECRET, "redirect_hosts": ["shop.example.com"]} | fields
    section = {name: value for name, value in client.items() if value is not None}
    await save_accounts(services, {"clients": [section]})


async def redeem(
    services: Services,
    credentials: ClientCredentials,
    code: str,
    *,
    uri: str = URI,
    verifier: str = "",
    proof: DpopProof | None = None,
    resources: tuple[str, ...] = (),
) -> dict[str, Any]:
    request = TokenRequest(grant_type="authorization_code", code=code, redirect_uri=uri, code_verifier=verifier)
    restrictions = TokenRestrictions(proof.jkt if proof else None, resources)
    return await services.oauth.token_endpoint.respond(request, credentials, None, restrictions, proof)


async def refresh(
    services: Services,
    credentials: ClientCredentials,
    refresh_token: str,
    *,
    uri: str = URI,
    key: str | None = None,
    proof: DpopProof | None = None,
    resources: tuple[str, ...] = (),
) -> dict[str, Any]:
    request = TokenRequest(grant_type="refresh_token", refresh_token=refresh_token, redirect_uri=uri)
    restrictions = TokenRestrictions(proof.jkt if proof else None, resources)
    return await services.oauth.token_endpoint.respond(request, credentials, key, restrictions, proof)


def new_proof(services: Services, jkt: str = "a" * 43, **fields: Any) -> DpopProof:
    """Returns a proof as it is after its signature was verified."""
    expires = int(services.database.clock.now()) + 300
    defaults: dict[str, Any] = {"jti": secret_token(), "expires": expires, "algorithm": "ES256", "nonce": ""}
    return DpopProof(jkt=jkt, **defaults | fields)


async def ban_everybody(services: Services) -> None:
    """Bans the users of the test, and leaves their grants to the checks of each request."""

    async def work(tx: Transaction) -> None:
        for row in await tx.rows(_USERS):
            await BanOperations(()).ban(tx, AuditActor(), row["user_id"], NewBan("Cheating"))

    await services.database.transaction(work)


async def new_code(
    services: Services, challenge: str | None = None, query_fields: Mapping[str, str] | None = None, **fields: Any
) -> str:
    """Returns a code for a new user who is signed in."""
    await apply_client(services, **fields)
    user = await add_user(services)
    address = IPv4Address("127.0.0.1")
    session = await services.sessions.start(user, by_password(), address, "")
    query = {
        "response_type": "code", "response_mode": "query", "client_id": fields.get("client_id", "shop"),
        "redirect_uri": URI, "scope": "openid offline_access", "nonce": "n",
    }  # fmt: skip
    query |= query_fields or {}
    if challenge:
        query |= {"code_challenge": challenge, "code_challenge_method": "S256"}
    parameters = Parameters.read(urlencode(query).encode())
    assert parameters
    authorize = services.oauth.authorize
    request = await authorize.validate(parameters, *await authorize.find_client(parameters, LOCAL))
    outcome = await authorize.begin(request, session)
    assert isinstance(outcome, RedirectTo)
    return parse_qs(urlsplit(outcome.url).query)["code"][0]


async def open_sign_in_page(browser: TestClientProtocol) -> str:
    """Returns the page that the client "shop" shows to a new browser."""
    query = {
        "response_type": "code", "response_mode": "query", "client_id": "shop", "redirect_uri": URI, "scope": "openid",
        "state": "s", "nonce": "n",
    }  # fmt: skip
    page: str = await (await browser.get(f"/proxy/oauth/authorize?{urlencode(query)}")).get_data(as_text=True)
    return page


async def log_in(services: Services, login: str) -> str:
    """Opens the sign-in page in a new browser, and sends the form. Returns the code."""
    browser = build_app(services, Health(), Metrics()).test_client()
    form = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', await open_sign_in_page(browser)))
    answer = await browser.post("/login", form=form | {"login": login, "password": PASSWORD})
    assert answer.status_code == 303, await answer.get_data(as_text=True)
    return parse_qs(urlsplit(answer.headers["Location"]).query)["code"][0]
