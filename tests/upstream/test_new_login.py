"""Sites that want a new login (prompt=login, max_age): a provider that signs in without a question does not suffice."""

import time
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from tests.kit.browser import Forms, user_id_of
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.oauth import Browser, Site, new_site, query_of
from tests.kit.server import Server
from tests.upstream.player import (
    add_provider,
    follow,
    is_signed_in,
    link,
    player,
    press,
    sign_in,
    sign_out,
    to_provider,
)
from tests.upstream.stand_ins import CodeProvider, SteamStandIn

PROVE_AGAIN = "You are signed in, but you must still prove that it is you"


@pytest.fixture(scope="module")
def site(server: Server) -> Site:
    return new_site(server, profile="oidc")


def linked_player(server: Server, provider_id: str) -> Browser:
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    return browser


def parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def flow_of(page: httpx.Response) -> str:
    return Forms(page.text).by_action["/login"][0]["next"]


def test_silent_sign_in_leads_to_the_password(server: Server, provider: CodeProvider, site: Site) -> None:
    provider_id = add_provider(server, provider)
    browser = linked_player(server, provider_id)
    next_path = flow_of(browser.authorize(site, prompt="login"))
    page = follow(browser, sign_in(browser, provider_id, next_path))
    assert page.status_code == 200
    assert PROVE_AGAIN in page.text
    answer = press(browser, str(page.url), "/login", login=browser.login, password=PASSWORD)
    assert query_of(answer)["code"]


def test_steam_leads_to_the_password(server: Server, steam: SteamStandIn, site: Site) -> None:
    provider_id = add_provider(server, steam, "steam")
    browser = linked_player(server, provider_id)
    next_path = flow_of(browser.authorize(site, max_age="600"))
    assert PROVE_AGAIN in follow(browser, sign_in(browser, provider_id, next_path)).text


@pytest.mark.parametrize("max_age", [None, "600"])
def test_another_account_may_be_one_of_steam_unless_the_site_wants_a_new_login(
    server: Server, steam: SteamStandIn, site: Site, max_age: str | None
) -> None:
    provider_id = add_provider(server, steam, "steam")
    owner, browser = linked_player(server, provider_id), player(server).sign_in()
    page = browser.authorize(site, prompt="select_account", max_age=max_age)
    next_path = parameters(browser.submit(page, {"decision": "other"}).headers["Location"])["next"]
    answer = follow(browser, sign_in(browser, provider_id, next_path))
    if max_age:
        assert PROVE_AGAIN in answer.text
    else:
        claims = site.claims(site.redeem(query_of(answer)["code"]).json()["id_token"])
        assert claims["sub"] == user_id_of(server, owner.login)


def test_page_after_another_account_on_the_consent_page_asks_for_no_proof_of_the_first(
    server: Server, provider: CodeProvider, site: Site
) -> None:
    provider_id = add_provider(server, provider)
    browser = linked_player(server, provider_id)
    follow(browser, sign_in(browser, provider_id))
    page = browser.authorize(site, prompt="select_account")
    page = follow(browser, browser.submit(page, {"decision": "other"}))
    assert flow_of(page)
    assert PROVE_AGAIN not in page.text


def test_page_after_another_account_at_the_second_factor_asks_for_no_proof_of_the_first(
    server: Server, provider: CodeProvider, site: Site
) -> None:
    provider_id = add_provider(server, provider)
    browser, other = linked_player(server, provider_id), player(server, totp_secret=TOTP_SECRET)
    next_path = flow_of(browser.authorize(site, prompt="login"))
    page = follow(browser, sign_in(browser, provider_id, next_path))
    assert PROVE_AGAIN in page.text
    page = follow(browser, browser.submit(page, {"login": other.login, "password": PASSWORD}))
    assert page.url.path == "/login/code"
    page = follow(browser, browser.submit(page, {}))
    assert flow_of(page) == next_path
    assert PROVE_AGAIN not in page.text
    assert is_signed_in(browser)
    answer = browser.submit(page, {"login": browser.login, "password": PASSWORD})
    assert query_of(answer)["code"]


@pytest.mark.parametrize(("age", "is_accepted"), [(0, True), (3600, False), (-3600, False)])
def test_time_of_the_login_at_the_provider_decides(
    server: Server, provider: CodeProvider, site: Site, age: int, is_accepted: bool
) -> None:
    provider_id = add_provider(server, provider)
    browser = linked_player(server, provider_id)
    provider.wrong_claims["auth_time"] = int(time.time()) - age
    next_path = flow_of(browser.authorize(site, prompt="login"))
    answer = follow(browser, sign_in(browser, provider_id, next_path))
    assert (answer.status_code in (302, 303)) == is_accepted
    assert ("code" in query_of(answer)) if is_accepted else (PROVE_AGAIN in answer.text)


@pytest.mark.parametrize("prompts", [["none", "login"], None])
def test_provider_is_asked_for_a_new_login(
    server: Server, provider: CodeProvider, site: Site, prompts: list[str] | None
) -> None:
    provider.wrong_metadata["prompt_values_supported"] = prompts
    provider_id = add_provider(server, provider)
    browser = player(server)
    next_path = flow_of(browser.authorize(site, prompt="login"))
    asked = parameters(to_provider(browser, provider_id, next_path))
    assert asked["max_age"] == "0"
    assert asked.get("prompt") == ("login" if prompts else None)
    usual = parameters(to_provider(browser, provider_id))
    assert "max_age" not in usual
    assert "prompt" not in usual


def test_session_of_a_silent_sign_in_does_not_satisfy_max_age(
    server: Server, provider: CodeProvider, site: Site
) -> None:
    provider_id = add_provider(server, provider)
    browser = linked_player(server, provider_id)
    follow(browser, sign_in(browser, provider_id))
    assert query_of(browser.authorize(site))["code"]
    page = browser.authorize(site, max_age="600")
    assert page.status_code == 200
    assert flow_of(page)


def player_without_a_password(server: Server, provider: CodeProvider, provider_id: str, next_path: str = "") -> Browser:
    """Creates an account with the identity, in a browser that is then signed in to it."""
    provider.person.email = f"{provider.person.subject}@example.com"
    browser = player(server)
    follow(browser, sign_in(browser, provider_id, next_path))
    press(browser, "/login/identity", "/login/identity/create", nick="Ann")
    return browser


@pytest.mark.parametrize("age", [0, None, 3600, -(10**12)])  # the last one are milliseconds
def test_player_without_a_password_needs_the_statement_of_the_provider(
    server: Server, provider: CodeProvider, site: Site, age: int | None
) -> None:
    """Without it, the session claims no time of authentication. Changes of the account are possible nevertheless."""
    provider_id = add_provider(server, provider, trusted_email=True)
    if age is not None:
        provider.wrong_claims["auth_time"] = int(time.time()) - age
    browser = player_without_a_password(server, provider, provider_id)
    for _ in ("new account", "later sign-in"):
        claims = site.claims(site.redeem(browser.code(site)).json()["id_token"])
        assert ("auth_time" in claims) == (age == 0)
        assert (browser.authorize(site, max_age="600").status_code == 302) == (age == 0)
        assert press(browser, "/account", "/account/email/notices", enable="0").status_code == 303
        sign_out(browser)
        follow(browser, sign_in(browser, provider_id))
    next_path = flow_of(browser.authorize(site, prompt="login"))
    answer = follow(browser, sign_in(browser, provider_id, next_path))
    assert ("code" in query_of(answer)) if age == 0 else (PROVE_AGAIN in answer.text)
