"""The viewer of the OpenAPI document, in Chromium with JavaScript and the page's own content security policy."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import HEIGHT, LONG, PHONE, Window, _thread
from tests.kit.server import Server

pytestmark = pytest.mark.browser


@pytest.fixture
def window(chromium: Browser) -> Iterator[Window]:
    """A window with JavaScript, which the viewer needs."""
    window = _thread.submit(Window, chromium, viewport={"width": PHONE, "height": HEIGHT}).result()
    yield window
    _thread.submit(window.context.close).result()
    assert window.errors == []  # nothing was blocked, and nothing was requested elsewhere


def keep_one_path(route: Route) -> None:
    answer = route.fetch()
    document = answer.json()
    document["paths"] = {path: document["paths"][path] for path in ("/proxy/api/login",)}
    route.fulfill(response=answer, json=document)


def test_viewer_shows_an_operation_in_the_colours_of_the_system(page: Page, server: Server) -> None:
    """Of a document with one path. With SSO_TEST_ROUNDS, of the whole document, which takes many seconds."""
    if not LONG:
        page.route("**/openapi.json", keep_one_path)
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.emulate_media(color_scheme="dark")
    page.goto(f"{server.base_url}/docs/api#post-/proxy/api/login")
    page.get_by_text("Sign in with a password or a session token").filter(visible=True).first.wait_for()
    assert page.locator("rapi-doc").get_attribute("theme") == "dark"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(color_scheme="light")
    expect(page.locator("rapi-doc")).to_have_attribute("theme", "light")
    assert hosts == {server.base_url.removeprefix("http://")}
