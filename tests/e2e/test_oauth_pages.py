"""From a site to sign-in and consent and back, in a real browser, which enforces the policies of the pages.

If SHOTS names a folder, screenshots of the pages are saved there.
"""

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.chromium import CHROMIUM, SIZES, with_page
from tests.kit.oauth import AUTHORIZE, Site, close_all, new_browser, new_site
from tests.kit.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]


class _Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<!doctype html><title>Back</title><h1>Back at the site</h1>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def callback() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Callback)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/cb"
    server.shutdown()
    thread.join()
    server.server_close()
    close_all()


@pytest.fixture(scope="module")
def shop(server: Server, callback: str) -> Site:
    return new_site(server, redirect_uri=callback, consent=True, name="Tank Shop")


def save_screenshot(page: Page, name: str, size: str) -> None:
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}-{size}.png", full_page=True)


def assert_fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("size", SIZES)
def test_sign_in_second_factor_and_consent_lead_back_to_the_site(server: Server, shop: Site, size: str) -> None:
    user = new_browser(server, totp_secret=TOTP_SECRET)

    def visit(page: Page) -> str:
        page.goto(f"{server.base_url}{AUTHORIZE}?{urlencode(shop.query(scope='openid email profile offline_access'))}")
        expect(page.get_by_text("to continue to Tank Shop")).to_be_visible()
        save_screenshot(page, "sign-in", size)
        assert_fits(page)
        page.get_by_label("E-mail").fill(user.login)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        save_screenshot(page, "code", size)
        page.get_by_label("Code").fill(pyotp.TOTP(TOTP_SECRET).now())
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="Let Tank Shop know who you are?")).to_be_visible()
        save_screenshot(page, "consent", size)
        assert_fits(page)
        page.get_by_role("button", name="Allow").click()
        expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
        url = page.url
        page.goto(
            f"{server.base_url}{AUTHORIZE}?{urlencode(shop.query(prompt='select_account', scope='openid email'))}"
        )
        expect(page.get_by_role("button", name="Continue as Ann")).to_be_visible()
        save_screenshot(page, "select-account", size)
        page.goto(f"{server.base_url}/account")
        expect(page.get_by_role("heading", name="Sites with access to your account")).to_be_visible()
        expect(page.get_by_role("heading", name="Tank Shop", exact=True)).not_to_have_count(0)
        save_screenshot(page, "account", size)
        assert_fits(page)
        page.goto(f"{server.base_url}/proxy/oauth/logout?client_id={shop.client_id}")
        save_screenshot(page, "logout", size)
        page.goto(f"{server.base_url}{AUTHORIZE}?client_id=nobody&redirect_uri=https://evil.com/")
        save_screenshot(page, "error", size)
        assert_fits(page)
        return url

    url = with_page(visit, size)
    parameters = parse_qs(urlsplit(url).query)
    assert url.startswith(shop.redirect_uri)
    assert shop.redeem(parameters["code"][0]).status_code == 200


def test_sign_in_leads_back_to_a_site_without_consent(server: Server, callback: str) -> None:
    site, user = new_site(server, redirect_uri=callback), new_browser(server)

    def visit(page: Page) -> str:
        page.goto(f"{server.base_url}{AUTHORIZE}?{urlencode(site.query(login_hint=user.login))}")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
        return page.url

    assert "code=" in with_page(visit)


def test_refused_consent_leads_back_with_an_error(server: Server, shop: Site) -> None:
    user = new_browser(server)

    def visit(page: Page) -> str:
        page.goto(f"{server.base_url}{AUTHORIZE}?{urlencode(shop.query(login_hint=user.login))}")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="No, go back").click()
        expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
        return page.url

    assert "error=access_denied" in with_page(visit)


@pytest.mark.parametrize("language", ["de", "es", "fr"])
def test_translated_pages_fit_on_a_phone(server: Server, shop: Site, language: str) -> None:
    user = new_browser(server, totp_secret=TOTP_SECRET)

    def visit(page: Page) -> None:
        def shown(name: str, path: str = "") -> None:
            if path:
                page.goto(server.base_url + path)
            assert page.locator("html").get_attribute("lang") == language
            save_screenshot(page, f"{name}-{language}", "narrow")
            assert_fits(page)

        query = shop.query(scope="openid email profile offline_access trust", ui_locales=language)
        shown("sign-in", f"{AUTHORIZE}?{urlencode(query)}")
        page.locator("#login").fill(user.login)
        page.locator("#password").fill(PASSWORD)
        page.locator("main button").first.click()
        shown("code")
        page.locator("#otp").fill(pyotp.TOTP(TOTP_SECRET).now())
        page.locator("main button").first.click()
        shown("consent")
        page.locator("main button").first.click()
        expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
        page.set_extra_http_headers({"Accept-Language": language})
        shown("account", "/account")
        shown("app", "/account/totp")
        shown("logout", f"/proxy/oauth/logout?client_id={shop.client_id}")
        shown("error", "/nowhere")

    with_page(visit, "narrow")
