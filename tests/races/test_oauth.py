"""What may happen once happens once, however many ask at the same instant, on whichever worker.

A few rounds in every run; RACE_ROUNDS=200 for the long one.
"""

import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import trio
import trio.testing

from tests.kit.oauth import REVOKE, TOKEN, USERINFO, Browser, Site, close_all, new_browser, new_site
from tests.kit.server import Server

ROUNDS = int(os.environ.get("RACE_ROUNDS", "3"))
AT_ONCE = 50
pytestmark = pytest.mark.timeout(120 + ROUNDS * 10)


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


@pytest.fixture
async def crowd(server: Server) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Each with a connection of its own, open before it counts; the two workers share them."""
    clients = [httpx.AsyncClient(base_url=server.base_url, timeout=30) for _ in range(AT_ONCE)]
    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(client.get, "/healthz")
    yield clients
    for client in clients:
        await client.aclose()


async def all_at_once(
    crowd: list[httpx.AsyncClient], form: dict[str, str], headers: dict[str, str]
) -> list[httpx.Response]:
    answers: list[httpx.Response] = []
    go = trio.Event()

    async def one(client: httpx.AsyncClient) -> None:
        await go.wait()
        answers.append(await client.post(TOKEN, data=form, headers=headers))

    async with trio.open_nursery() as nursery:
        for client in crowd:
            nursery.start_soon(one, client)
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    return answers


def outcomes(answers: list[httpx.Response]) -> Counter[str]:
    return Counter("ok" if answer.status_code == 200 else answer.json()["error"] for answer in answers)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("profile", ["strict", "oidc"])
async def test_one_of_fifty_redemptions_of_a_code_wins(
    sites: dict[str, Site], browser: Browser, crowd: list[httpx.AsyncClient], profile: str, named: bool
) -> None:
    """Whether or not they say who they are, which lets a worker that knows them redeem at once."""
    site = sites[profile]
    for _ in range(ROUNDS):
        form = {
            "grant_type": "authorization_code",
            "code": browser.code(site),
            "redirect_uri": site.redirect_uri,
        } | ({"client_id": site.client_id} if named else {})
        answers = await all_at_once(crowd, form, site.bearer())
        assert outcomes(answers) == {"ok": 1, "invalid_grant": AT_ONCE - 1}
        # The others were replays: what the winner got is worth nothing any more.
        (won,) = (answer.json() for answer in answers if answer.status_code == 200)
        assert site.userinfo(won["access_token"]).status_code == 401
        assert site.refresh(won["refresh_token"]).status_code == 400


@pytest.mark.parametrize("profile", ["strict", "oidc"])
async def test_one_of_fifty_refreshes_of_a_token_wins(
    sites: dict[str, Site], browser: Browser, crowd: list[httpx.AsyncClient], profile: str
) -> None:
    site = sites[profile]
    token = site.tokens(browser)["refresh_token"]
    for _ in range(ROUNDS):
        form = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": site.redirect_uri}
        answers = await all_at_once(crowd, form, site.bearer())
        error = "invalid_request" if profile == "strict" else "invalid_grant"
        assert outcomes(answers) == {"ok": 1, error: AT_ONCE - 1}
        (won,) = (answer.json() for answer in answers if answer.status_code == 200)
        after = site.refresh(won["refresh_token"])
        if profile == "strict":
            token = after.json()["refresh_token"]  # one live head, and this is it
        else:
            assert after.status_code == 400  # a token that was used twice ends the grant
            token = site.tokens(browser)["refresh_token"]


@pytest.mark.parametrize("decisions", [("allow", "allow"), ("allow", "deny")])
async def test_one_of_many_answers_to_an_authorization_wins(
    server: Server, browser: Browser, crowd: list[httpx.AsyncClient], decisions: tuple[str, str]
) -> None:
    site = await trio.to_thread.run_sync(lambda: new_site(server, consent=True))
    cookies = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
    for _ in range(ROUNDS):
        page = browser.authorize(site, prompt="consent").text
        (path,) = set(re.findall(r'action="(/proxy/oauth/authorize/[^"]+)"', page))
        (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', page))
        answers: list[httpx.Response] = []

        async def one(
            client: httpx.AsyncClient, decision: str, path: str, csrf: str, answers: list[httpx.Response]
        ) -> None:
            form = {"csrf": csrf, "decision": decision}
            answers.append(await client.post(path, data=form, headers={"Cookie": cookies}))

        async with trio.open_nursery() as nursery:
            for number, client in enumerate(crowd):
                nursery.start_soon(one, client, decisions[number % 2], path, csrf, answers)
        assert Counter(answer.status_code for answer in answers) == {303: 1, 400: AT_ONCE - 1}


async def test_a_revocation_holds_for_every_request_that_starts_after_its_answer(
    sites: dict[str, Site], browser: Browser, crowd: list[httpx.AsyncClient]
) -> None:
    site = sites["strict"]
    data = site.tokens(browser)
    refreshed = data["refresh_token"]
    for _ in range(ROUNDS * 3):
        data = site.tokens(browser)
        headers = {"Authorization": f"Bearer {data['access_token']}"}
        assert site.http.get(USERINFO, headers=headers).status_code == 200
        form = {"client_id": site.client_id, "client_secret": site.secret, "refresh_token": data["refresh_token"]}
        assert (await crowd[0].post(REVOKE, data=form)).status_code == 200
        statuses: list[int] = []

        async def look(client: httpx.AsyncClient, headers: dict[str, str], statuses: list[int]) -> None:
            statuses.append((await client.get(USERINFO, headers=headers)).status_code)

        async with trio.open_nursery() as nursery:
            for client in crowd[:8]:
                nursery.start_soon(look, client, headers, statuses)
        assert statuses == [401] * 8
    assert site.refresh(refreshed).status_code == 200


def test_both_workers_took_part(server: Server) -> None:
    assert len(server.workers()) == 2
