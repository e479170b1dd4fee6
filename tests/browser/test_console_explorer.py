"""The permission explorer and the branding preview in Chromium."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, HEIGHT, Window, _thread
from tests.browser.test_account_layout import sign_in_with_scripts
from tests.browser.test_console import look
from tests.kit.browser import new_user
from tests.kit.server import Server

pytestmark = pytest.mark.browser
APPLICATION = 7120  # an id
ROLES = [
    {"name": "moderator", "meta": {"private_data": {"chat": {"kick": {"value": True}, "mute": {"value": True}}}}},
    {
        "name": "tester",
        "meta": {"private_data": {"lab": {"enter": {"value": True, "params": "north,south"}}}},
        "condition": {"tag": "tester"},
    },
]


@pytest.fixture
def window(chromium: Browser) -> Iterator[Window]:
    window = _thread.submit(Window, chromium, viewport={"width": DESKTOP, "height": HEIGHT}).result()
    yield window
    _thread.submit(window.context.close).result()
    assert window.errors == []


@pytest.fixture(scope="module")
def administrator(server: Server) -> str:
    login = new_user(server, nick="Explorer Administrator", user_id="7120001")
    server.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
    return login


def test_permissions_of_two_users_are_compared(page: Page, server: Server, administrator: str) -> None:
    ann = new_user(server, login="explored.ann@example.com", user_id="7120002", tags=["tester"])
    bob = new_user(server, login="explored.bob@example.com", user_id="7120003")
    schema = {"private_data": {"chat": {"write": {"value": True}, "kick": {"value": False}, "mute": {"value": False}}}}
    server.apply(
        {
            "applications": [{"application_id": APPLICATION, "name": "Explored game"}],
            "schemas": {str(APPLICATION): schema},
            "roles": {str(APPLICATION): ROLES},
            "permissions": [{"user_id": ann, "application_id": APPLICATION, "data": {"roles": ["moderator"]}}],
        }
    )
    sign_in_with_scripts(page, server, administrator)
    page.goto(f"{server.base_url}/console/users/7120002")
    page.get_by_role("link", name="Permissions", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Permission explorer")
    page.get_by_label("Application").fill("explored game")
    page.get_by_role("button", name="Show").click()
    kick = page.locator(".leaf", has_text="kick")
    expect(kick).to_contain_text("role moderator")
    look(page, "explorer")
    expect(page.get_by_label("Other user")).to_be_hidden()
    page.get_by_label("Compare with").select_option("Another user")
    page.get_by_label("Other user").fill(bob)
    page.get_by_label("Only the differences").check()
    page.get_by_role("button", name="Show").click()
    row = page.locator("tr", has_text="kick")
    expect(row).to_contain_text(f"Only {ann}")
    expect(page.locator("tr", has_text="write")).to_have_count(0)
    row.get_by_role("link", name="Why not").click()
    expect(page.locator("#explanation")).to_contain_text("Not allowed")
    look(page, "explorer-compared")
