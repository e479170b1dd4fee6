"""Of many concurrent requests, exactly one redeems a code, rotates a token or finishes an authorization.

A usual run has one round; SSO_TEST_ROUNDS=200 gives a long one.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import jwt as pyjwt
import pytest
import trio
import trio.testing

from sso.core.keys import GENERATE, public_jwk
from tests.kit.dpop import DpopKey
from tests.kit.oauth import (
    AUTHORIZE,
    PAR,
    REVOKE,
    TOKEN,
    USERINFO,
    Browser,
    Site,
    close_all,
    new_browser,
    new_site,
    query_of,
)
from tests.kit.server import Server
from tests.races.conftest import CONCURRENT

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
pytestmark = [pytest.mark.timeout(120 + ROUNDS * 10), pytest.mark.two_workers]


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def browser(server: Server) -> Browser:
    return new_browser(server).sign_in()


@pytest.fixture(scope="module")
def sites(server: Server) -> dict[str, Site]:
    return {profile: new_site(server, profile=profile) for profile in ("strict", "oidc")}


async def send_concurrently(
    clients: list[httpx.AsyncClient], form: dict[str, str], headers: dict[str, str]
) -> list[httpx.Response]:
    responses: list[httpx.Response] = []
    go = trio.Event()

    async def one(client: httpx.AsyncClient) -> None:
        await go.wait()
        responses.append(await client.post(TOKEN, data=form, headers=headers))

    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(one, client)
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    return responses


def outcomes(responses: list[httpx.Response]) -> Counter[str]:
    return Counter("ok" if response.status_code == 200 else response.json()["error"] for response in responses)


@pytest.mark.parametrize("with_client_id", [True, False])
@pytest.mark.parametrize("profile", ["strict", "oidc"])
async def test_one_of_many_concurrent_redemptions_wins(
    sites: dict[str, Site], browser: Browser, clients: list[httpx.AsyncClient], profile: str, with_client_id: bool
) -> None:
    """With a client_id in the request, a worker that has cached the client uses the fast path."""
    site = sites[profile]
    for _ in range(ROUNDS):
        form = {
            "grant_type": "authorization_code",
            "code": browser.code(site),
            "redirect_uri": site.redirect_uri,
        } | ({"client_id": site.client_id} if with_client_id else {})
        responses = await send_concurrently(clients, form, site.bearer())
        assert outcomes(responses) == {"ok": 1, "invalid_grant": CONCURRENT - 1}
        # The other requests were replays, which revoke the tokens of the winner.
        (won,) = (response.json() for response in responses if response.status_code == 200)
        assert site.userinfo(won["access_token"]).status_code == 401
        assert site.refresh(won["refresh_token"]).status_code == 400


@pytest.mark.parametrize("profile", ["strict", "oidc"])
async def test_one_of_many_concurrent_refreshes_wins(
    sites: dict[str, Site], browser: Browser, clients: list[httpx.AsyncClient], profile: str
) -> None:
    site = sites[profile]
    token = site.tokens(browser)["refresh_token"]
    for _ in range(ROUNDS):
        form = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": site.redirect_uri}
        responses = await send_concurrently(clients, form, site.bearer())
        error = "invalid_request" if profile == "strict" else "invalid_grant"
        assert outcomes(responses) == {"ok": 1, error: CONCURRENT - 1}
        (won,) = (response.json() for response in responses if response.status_code == 200)
        after = site.refresh(won["refresh_token"])
        if profile == "strict":
            token = after.json()["refresh_token"]  # the one valid token
        else:
            assert after.status_code == 400  # a replayed token revokes the grant
            token = site.tokens(browser)["refresh_token"]


@pytest.mark.parametrize("profile", ["strict", "oidc"])
async def test_many_concurrent_refreshes_with_one_idempotency_key_get_the_same_tokens(
    sites: dict[str, Site], browser: Browser, clients: list[httpx.AsyncClient], profile: str
) -> None:
    site = sites[profile]
    token = site.tokens(browser)["refresh_token"]
    for number in range(ROUNDS):
        form = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": site.redirect_uri}
        headers = site.bearer() | {"Idempotency-Key": f"round-{number}"}
        responses = await send_concurrently(clients, form, headers)
        assert outcomes(responses) == {"ok": CONCURRENT}
        names = ("access_token", "id_token", "refresh_token")
        ((_, _, token),) = {tuple(response.json()[name] for name in names) for response in responses}


async def test_one_of_many_idempotency_keys_wins(
    sites: dict[str, Site], browser: Browser, clients: list[httpx.AsyncClient]
) -> None:
    site = sites["strict"]
    token = site.tokens(browser)["refresh_token"]
    for _ in range(ROUNDS):
        form = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": site.redirect_uri}
        responses: list[httpx.Response] = []

        async def one(number: int, form: dict[str, str], responses: list[httpx.Response]) -> None:
            headers = site.bearer() | {"Idempotency-Key": f"key-{number}"}
            responses.append(await clients[number].post(TOKEN, data=form, headers=headers))

        async with trio.open_nursery() as nursery:
            for number in range(CONCURRENT):
                nursery.start_soon(one, number, form, responses)
        assert outcomes(responses) == {"ok": 1, "invalid_request": CONCURRENT - 1}
        (token,) = (response.json()["refresh_token"] for response in responses if response.status_code == 200)


@pytest.mark.parametrize("decisions", [("allow", "allow"), ("allow", "deny")])
async def test_one_of_many_concurrent_decisions_wins(
    server: Server, browser: Browser, clients: list[httpx.AsyncClient], decisions: tuple[str, str]
) -> None:
    site = await trio.to_thread.run_sync(lambda: new_site(server, consent=True))
    cookies = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
    for _ in range(ROUNDS):
        page = browser.authorize(site, prompt="consent").text
        (path,) = set(re.findall(r'action="(/proxy/oauth/authorize/[^"]+)"', page))
        (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', page))
        responses: list[httpx.Response] = []

        async def one(
            client: httpx.AsyncClient, decision: str, path: str, csrf: str, responses: list[httpx.Response]
        ) -> None:
            form = {"csrf": csrf, "decision": decision}
            responses.append(await client.post(path, data=form, headers={"Cookie": cookies}))

        async with trio.open_nursery() as nursery:
            for number, client in enumerate(clients):
                nursery.start_soon(one, client, decisions[number % 2], path, csrf, responses)
        assert Counter(response.status_code for response in responses) == {303: 1, 400: CONCURRENT - 1}


async def test_revoked_token_is_refused_by_every_later_request(
    sites: dict[str, Site], browser: Browser, clients: list[httpx.AsyncClient]
) -> None:
    site = sites["strict"]
    data = site.tokens(browser)
    refreshed = data["refresh_token"]
    for _ in range(ROUNDS * 3):
        data = site.tokens(browser)
        headers = {"Authorization": f"Bearer {data['access_token']}"}
        assert site.http.get(USERINFO, headers=headers).status_code == 200
        form = {"client_id": site.client_id, "client_secret": site.secret, "refresh_token": data["refresh_token"]}
        assert (await clients[0].post(REVOKE, data=form)).status_code == 200
        statuses: list[int] = []

        async def look(client: httpx.AsyncClient, headers: dict[str, str], statuses: list[int]) -> None:
            statuses.append((await client.get(USERINFO, headers=headers)).status_code)

        async with trio.open_nursery() as nursery:
            for client in clients[:8]:
                nursery.start_soon(look, client, headers, statuses)
        assert statuses == [401] * 8
    assert site.refresh(refreshed).status_code == 200


async def test_one_of_many_concurrent_requests_uses_a_pushed_request(
    sites: dict[str, Site], browser: Browser, clients: list[httpx.AsyncClient]
) -> None:
    site = sites["oidc"]
    cookies = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
    for _ in range(ROUNDS):
        pushed = site.http.post(PAR, data=site.query(), headers=site.basic()).json()
        parameters = {"client_id": site.client_id, "request_uri": pushed["request_uri"]}
        responses: list[httpx.Response] = []

        async def one(client: httpx.AsyncClient, parameters: dict[str, str], responses: list[httpx.Response]) -> None:
            responses.append(await client.get(AUTHORIZE, params=parameters, headers={"Cookie": cookies}))

        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(one, client, parameters, responses)
        assert Counter(response.status_code for response in responses) == {302: 1, 400: CONCURRENT - 1}
        (won,) = (response for response in responses if response.status_code == 302)
        assert site.redeem(query_of(won)["code"]).status_code == 200


async def test_one_of_many_concurrent_requests_uses_a_dpop_proof(
    sites: dict[str, Site], browser: Browser, clients: list[httpx.AsyncClient]
) -> None:
    site, key = sites["oidc"], DpopKey()
    token = site.redeem(browser.code(site), headers=site.bearer() | key.headers(site)).json()["access_token"]
    for _ in range(ROUNDS):
        headers = key.at_userinfo(site, token)
        responses: list[httpx.Response] = []

        async def one(client: httpx.AsyncClient, headers: dict[str, str], responses: list[httpx.Response]) -> None:
            responses.append(await client.get(USERINFO, headers=headers))

        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(one, client, headers, responses)
        assert outcomes(responses) == {"ok": 1, "invalid_dpop_proof": CONCURRENT - 1}


async def test_one_of_many_concurrent_refreshes_uses_a_dpop_proof(
    sites: dict[str, Site], browser: Browser, clients: list[httpx.AsyncClient]
) -> None:
    site, key = sites["oidc"], DpopKey()
    token = site.redeem(browser.code(site), headers=site.bearer() | key.headers(site)).json()["refresh_token"]
    for _ in range(ROUNDS):
        form = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": site.redirect_uri}
        responses = await send_concurrently(clients, form, site.bearer() | key.headers(site))
        assert outcomes(responses) == {"ok": 1, "invalid_dpop_proof": CONCURRENT - 1}
        # The others did not present the token, so they did not revoke the grant.
        (token,) = (response.json()["refresh_token"] for response in responses if response.status_code == 200)


def test_server_has_two_workers(server: Server) -> None:
    assert len(server.workers()) == 2


async def test_one_of_many_concurrent_requests_uses_a_client_assertion(
    server: Server, browser: Browser, clients: list[httpx.AsyncClient]
) -> None:
    key = GENERATE["ES256"]()
    jwks = {"keys": [public_jwk(key.public_key(), "one")]}
    attributes = {"profile": "oidc", "token_endpoint_auth_method": "private_key_jwt", "jwks": jwks}
    site = await trio.to_thread.run_sync(lambda: new_site(server, public=True, **attributes))
    for number in range(ROUNDS):
        claims = {"iss": site.client_id, "sub": site.client_id, "aud": server.base_url, "jti": f"race-{number}"}
        form = {
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": pyjwt.encode({**claims, "exp": int(time.time()) + 60}, key, "ES256"),
            "grant_type": "authorization_code",
            "code": "unknown",
            "redirect_uri": site.redirect_uri,
        }
        responses = await send_concurrently(clients, form, {})
        # The winner is authenticated and told that the code is unknown.
        assert outcomes(responses) == {"invalid_grant": 1, "invalid_client": CONCURRENT - 1}
