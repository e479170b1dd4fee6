"""From a site to sign-in and consent and back, in Chromium, which enforces the policies of the pages."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG, Screenshot
from tests.kit.browser_pages import desktop_only, open_authorization
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.long_tests import takes_long
from tests.kit.oauth import AUTHORIZE, Browser, Site, close_all, new_browser, new_site
from tests.kit.server import Server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shop(server: Server, callback: str) -> Iterator[Site]:
    yield new_site(server, redirect_uri=callback, consent=True, name="Tank Shop")
    close_all()


@pytest.fixture
def user(server: Server) -> Browser:
    """Made here and not in a test, because a test runs in the thread of Playwright's event loop."""
    return new_browser(server)


@pytest.fixture
def user_with_app(server: Server) -> Browser:
    return new_browser(server, totp_secret=TOTP_SECRET)


def test_sign_in_second_factor_and_consent_lead_back_to_the_site(
    page: Page, server: Server, shop: Site, user_with_app: Browser, screenshot: Screenshot
) -> None:
    open_authorization(page, server, shop, scope="openid email profile offline_access")
    expect(page.get_by_text("to continue to Tank Shop")).to_be_visible()
    screenshot("sign-in")
    page.get_by_label("E-mail").fill(user_with_app.login)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    screenshot("code")
    page.get_by_label("Code").fill(pyotp.TOTP(TOTP_SECRET).now())
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Let Tank Shop know who you are?")).to_be_visible()
    screenshot("consent")
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
    assert page.url.startswith(shop.redirect_uri)
    assert shop.redeem(parse_qs(urlsplit(page.url).query)["code"][0]).status_code == 200


def test_pages_of_a_site_with_access_fit(
    page: Page, server: Server, shop: Site, user: Browser, screenshot: Screenshot
) -> None:
    open_authorization(page, server, shop, scope="openid email", login_hint=user.login)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
    open_authorization(page, server, shop, scope="openid email", prompt="select_account")
    expect(page.get_by_role("button", name="Continue as Ann")).to_be_visible()
    screenshot("select-account")
    page.goto(f"{server.base_url}/account")
    expect(page.get_by_role("heading", name="Sites with access to your account")).to_be_visible()
    expect(page.get_by_role("heading", name="Tank Shop", exact=True)).not_to_have_count(0)
    screenshot("account")
    page.goto(f"{server.base_url}/proxy/oauth/logout?client_id={shop.client_id}")
    screenshot("logout")
    page.goto(f"{server.base_url}{AUTHORIZE}?client_id=unknown&redirect_uri=https://evil.com/")
    screenshot("error")


@takes_long
@desktop_only
def test_sign_in_leads_back_to_a_site_without_consent(page: Page, server: Server, callback: str, user: Browser) -> None:
    open_authorization(page, server, new_site(server, redirect_uri=callback), login_hint=user.login)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
    assert "code=" in page.url


@takes_long
@desktop_only
def test_refused_consent_leads_back_with_an_error(page: Page, server: Server, shop: Site, user: Browser) -> None:
    open_authorization(page, server, shop, login_hint=user.login)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="No, go back").click()
    expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
    assert "error=access_denied" in page.url


@pytest.mark.parametrize("width", [390])
@pytest.mark.parametrize("language", ["de", "es", "fr", "ja", "pl", "pt-BR", "ru"] if LONG else ["ru"])
def test_translated_pages_fit_on_a_phone(
    page: Page, server: Server, shop: Site, user_with_app: Browser, screenshot: Screenshot, language: str
) -> None:
    def check(name: str) -> None:
        assert page.locator("html").get_attribute("lang") == language
        screenshot(f"{name}-{language}")

    open_authorization(page, server, shop, scope="openid email profile offline_access trust", ui_locales=language)
    check("sign-in")
    page.locator("#login").fill(user_with_app.login)
    page.locator("#password").fill(PASSWORD)
    page.locator("main button").first.click()
    check("code")
    page.locator("#otp").fill(pyotp.TOTP(TOTP_SECRET).now())
    page.locator("main button").first.click()
    check("consent")
    page.locator("main button").first.click()
    expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
    page.set_extra_http_headers({"Accept-Language": language})
    for name, path in (
        ("account", "/account"),
        ("app", "/account/totp"),
        ("logout", f"/proxy/oauth/logout?client_id={shop.client_id}"),
        ("error", "/nowhere"),
    ):
        page.goto(server.base_url + path)
        check(name)


@pytest.fixture(scope="module")
def form_shop(server: Server, callback: str) -> Site:
    return new_site(server, redirect_uri=callback, profile="oidc", name="Tank Shop")


def sign_in_with_form_post(page: Page, server: Server, site: Site, user: Browser) -> None:
    open_authorization(page, server, site, response_mode="form_post", login_hint=user.login)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


@desktop_only
def test_answer_of_a_sign_in_is_posted_by_a_script(
    scripted: Page, server: Server, form_shop: Site, user: Browser
) -> None:
    sign_in_with_form_post(scripted, server, form_shop, user)
    expect(scripted.get_by_role("heading", name="Received code iss state")).to_be_visible()


@desktop_only
def test_answer_of_a_sign_in_is_posted_by_a_button_without_javascript(
    page: Page, server: Server, form_shop: Site, user: Browser
) -> None:
    sign_in_with_form_post(page, server, form_shop, user)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Received code iss state")).to_be_visible()
