"""The claims about the sign-in after each way to sign in with a browser."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from sso.accounts.authentication_context import acr_of, amr_of, by_mailed_link
from tests.kit.browser import Browser, fresh_browser, new_user
from tests.kit.oauth import ACR_MFA, ACR_PASSKEY, ACR_PASSWORD, AUTHORIZE, Site, query_of
from tests.kit.passkey import USER_PRESENT, SoftwarePasskey, page_options
from tests.kit.passkey_sign_in import new_passkey, passkey_sign_in, register
from tests.kit.server import Server


@pytest.fixture(scope="module")
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture(scope="module")
def registered(server: Server, login: str) -> Iterator[tuple[Browser, SoftwarePasskey]]:
    """The browser that registered a passkey, and the passkey."""
    with fresh_browser(server, login) as browser:
        passkey = new_passkey(server)
        assert register(browser, passkey).status_code == 303
        yield browser, passkey


def sign_in_claims(site: Site, browser: Browser) -> tuple[str, list[str]]:
    answer = browser.http.get(f"{AUTHORIZE}?{urlencode(site.query())}")
    assert answer.status_code == 302, answer.text
    claims = site.claims(site.redeem(query_of(answer)["code"]).json()["id_token"])
    return claims["acr"], claims["amr"]


def test_passkey_alone(server: Server, oidc: Site, registered: tuple[Browser, SoftwarePasskey]) -> None:
    with Browser(server) as browser:
        passkey_sign_in(browser, registered[1])
        assert sign_in_claims(oidc, browser) == (ACR_PASSKEY, ["pop", "user", "mfa"])


def test_password_and_passkey(
    server: Server, oidc: Site, login: str, registered: tuple[Browser, SoftwarePasskey]
) -> None:
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        options = page_options(browser.page.text)
        browser.submit("/login/code/passkey", credential=registered[1].get(options, flags=USER_PRESENT))
        assert sign_in_claims(oidc, browser) == (ACR_PASSKEY, ["pwd", "pop", "user", "mfa"])


def test_session_in_which_a_passkey_was_registered(oidc: Site, registered: tuple[Browser, SoftwarePasskey]) -> None:
    assert sign_in_claims(oidc, registered[0]) == (ACR_PASSWORD, ["pwd"])  # the sign-in was without the passkey


def test_history_names_the_way_to_sign_in(
    server: Server, oidc: Site, registered: tuple[Browser, SoftwarePasskey]
) -> None:
    with Browser(server) as browser:
        passkey_sign_in(browser, registered[1])
        assert "with a passkey" in browser.http.get("/account/history").text


@pytest.mark.parametrize(("factor", "acr", "amr"), [("email", ACR_PASSWORD, []), ("totp", ACR_MFA, ["otp", "mfa"])])
def test_mailed_code_after_a_mailed_link_proves_nothing_more(factor: str, acr: str, amr: list[str]) -> None:
    auth = by_mailed_link().with_code(factor).auth
    assert (acr_of(auth), amr_of(auth)) == (acr, amr)
