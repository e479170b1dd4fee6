"""The pages of the OpenAPI document, in Chromium with JavaScript and the pages' own content security policy."""

import html
import os
import re
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import service_token
from tests.browser.conftest import HEIGHT, PHONE, Window, _thread
from tests.kit.builders import PASSWORD
from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, Studio, studio

__all__ = ["studio"]

pytestmark = pytest.mark.browser


@pytest.fixture
def window(chromium: Browser) -> Iterator[Window]:
    """A window with JavaScript, which sends the requests."""
    window = _thread.submit(Window, chromium, viewport={"width": PHONE, "height": HEIGHT}).result()
    yield window
    _thread.submit(window.context.close).result()
    assert window.errors == []  # nothing was blocked, and nothing was requested elsewhere


def test_menu_on_a_phone_leads_to_an_operation_that_can_be_tried(page: Page, server: Server, studio: Studio) -> None:
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(f"{server.base_url}/docs/api")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_role("navigation")).to_be_hidden()
    page.get_by_role("link", name="Menu").click()
    page.get_by_label("Find an operation").fill("list_users")
    page.get_by_role("link", name="List users").click()
    expect(page.get_by_role("heading", name="List users")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("Token").fill(studio.root.jwt)
    page.get_by_label("Factor").fill(FACTOR)
    page.get_by_label("search").fill(studio.root.login)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("output")).to_contain_text(f'"login": "{studio.root.login}"')
    # The token is still there on another page, until it is forgotten.
    page.goto(f"{server.base_url}/docs/api/get_user")
    page.get_by_label("user_id").fill(studio.root.user_id)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("output")).to_contain_text("200")
    page.get_by_role("button", name="Forget the token").click()
    page.get_by_role("button", name="Send").click()
    expect(page.locator("output")).to_contain_text("401")
    assert hosts == {server.base_url.removeprefix("http://")}


def test_commands_of_the_page_get_a_token_and_call_the_api(server: Server, studio: Studio) -> None:
    service_token(server, "automation", 1)
    text = httpx.get(f"{server.base_url}/docs/api", timeout=60).text
    values = {
        "CLIENT_SECRET": "a secret of the client automation",
        "LOGIN": studio.root.login,
        "PASSWORD": PASSWORD,
    }
    for section in ("program-token", "person-token"):
        (command,) = re.findall(f'<pre id="{section}"><code>(.*?)</code>', text, re.DOTALL)
        # The base URL of a test server is not that of its settings.
        script = re.sub(r"^SSO=.*", f"SSO={server.base_url}", html.unescape(command))
        done = subprocess.run(
            ["bash", "-c", script], env=os.environ | values, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith('{"status":"OK","data":[{'), f"{section}: {done.stdout} {done.stderr}"


def test_pages_need_no_script_and_unknown_operations_are_not_found(server: Server) -> None:
    page = httpx.get(f"{server.base_url}/docs/api/create_user", timeout=60)
    assert page.status_code == 200
    for text in ("/api/admin/users", "The password. It is stored as a hash and never shown.", "Answer 201"):
        assert text in page.text
    assert "unsafe-inline" not in page.headers["Content-Security-Policy"]
    assert httpx.get(f"{server.base_url}/docs/api/nothing", timeout=60).status_code == 404
