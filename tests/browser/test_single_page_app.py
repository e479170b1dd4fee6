"""A public client in the browser: a page of another origin signs in with PKCE and calls the endpoints with fetch."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect

from tests.browser.conftest import Window, _thread
from tests.kit.builders import PASSWORD
from tests.kit.oauth import Browser, Site, close_all, new_browser, new_site
from tests.kit.page_server import serving_pages
from tests.kit.server import Server
from tests.rp.quickstart import INSTALLED, Quickstart

pytestmark = pytest.mark.browser
OIDC_CLIENT_TS = INSTALLED / "single_page_app/node_modules"
REACT = INSTALLED / "react/node_modules"
PAGE = Path(__file__).with_name("single_page_app.html").read_bytes()


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The origin of the app: a web server that has nothing but the page."""
    with serving_pages(lambda _: PAGE) as origin:
        yield origin
    close_all()


@pytest.fixture
def app(server: Server, origin: str) -> Site:
    return new_site(server, public=True, profile="oidc", redirect_uri=f"{origin}/", redirect_uris=[f"{origin}/"])


@pytest.fixture
def user(server: Server) -> Browser:
    return new_browser(server)


@pytest.fixture
def window(chromium: Chromium) -> Iterator[Window]:
    window = _thread.submit(Window, chromium).result()
    yield window
    _thread.submit(window.context.close).result()
    assert window.errors == []


def test_single_page_app_signs_in_with_pkce(page: Page, server: Server, origin: str, app: Site, user: Browser) -> None:
    settings = json.dumps({"issuer": server.base_url, "clientId": app.client_id})
    page.goto(f"{origin}/?{urlencode({'settings': settings})}")
    page.get_by_label("E-mail").fill(user.login)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#result")).to_contain_text("sub")
    result = json.loads(page.locator("#result").inner_text())
    assert result["sameState"] is True
    assert result["sub"]
    assert (result["revoked"], result["after"]) == (200, 401)
    assert "invalid_token" in result["challenge"]
    assert result["keys"] >= 3


@pytest.mark.skipif(not OIDC_CLIENT_TS.is_dir(), reason="oidc-client-ts: run scripts/rp")
def test_quickstart_with_oidc_client_ts_signs_in_and_out(
    page: Page, server: Server, user: Browser, tmp_path: Path
) -> None:
    with Quickstart(server, tmp_path, "single_page_app", "5173", OIDC_CLIENT_TS).running() as app:
        page.goto(app.url)
        expect(page.locator("#status")).to_have_text("Not signed in.")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("E-mail").fill(user.login)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#status")).to_have_text(f"Signed in as Ann ({user.login}).")
        assert page.url == f"{app.url}/"
        page.reload()
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("#status")).to_have_text("Not signed in.")
        page.goto(f"{server.base_url}/account")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()


@pytest.mark.skipif(not REACT.is_dir(), reason="react-oidc-context: run scripts/rp")
def test_quickstart_with_react_signs_in_and_out(
    page: Page, window: Window, server: Server, user: Browser, tmp_path: Path
) -> None:
    with Quickstart(server, tmp_path, "react", "5174", REACT).running() as app:
        page.goto(app.url, timeout=300_000)  # the packages are bundled at first
        page.get_by_role("button", name="Sign in").click(timeout=300_000)
        page.get_by_label("E-mail").fill(user.login)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text(f"Signed in as Ann ({user.login}).")).to_be_visible(timeout=60_000)
        assert page.url == f"{app.url}/"
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=60_000)
        page.goto(f"{server.base_url}/account")
        expect(page.get_by_label("Password", exact=True)).to_be_visible()
        # Vite and React talk to developers in the console.
        window.errors[:] = [text for text in window.errors if not re.search(r"\[vite\]|React DevTools", text)]
