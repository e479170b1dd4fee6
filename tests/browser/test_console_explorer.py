"""The permission explorer and the branding preview in Chromium."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import open_signed_in
from tests.kit.browser import new_user
from tests.kit.browser_pages import look, look_again, window
from tests.kit.server import Server, until

__all__ = ["window"]
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

CLIENT = {
    "client_id": "arena-of-the-explorer",
    "client_secret": "a secret of sixteen",
    "name": "Arena",
    "profile": "oidc",
    "redirect_uris": ["https://arena.example/callback"],
}
LOGO = (
    """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 32"><rect width="120" height="32" fill="#a21"/></svg>"""
)


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
    open_signed_in(page, server, administrator, "/console/users/7120002")
    page.get_by_role("link", name="Permissions", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Permission explorer")
    page.get_by_label("Application").fill("explored game")
    page.get_by_role("button", name="Show").click()
    kick = page.locator(".leaf", has_text="kick")
    expect(kick).to_contain_text("role moderator")
    look_again(page, "explorer")
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
    page.get_by_role("link", name="Who may do this?").click()
    page.get_by_label("Rule", exact=True).fill("chat.kick")
    page.get_by_label("Application").fill("explored game")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tr", has_text="role moderator")).to_have_count(1)
    look(page, "explorer-who")


def test_branding_of_a_client_is_previewed_and_saved(
    page: Page, server: Server, administrator: str, tmp_path: Path
) -> None:
    server.apply({"clients": [CLIENT]})
    (tmp_path / "logo.svg").write_text(LOGO)
    open_signed_in(page, server, administrator, f"/console/clients/{CLIENT['client_id']}")
    page.get_by_role("link", name="Branding").last.click()
    frame = page.frame_locator("iframe[title='Sign-in: light, phone']")
    expect(frame.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Accent colour").fill("#aa2211")
    page.get_by_label("Text on the sign-in form").fill("Use the account of the arena.")
    page.get_by_label("Read the logo from a file").set_input_files(tmp_path / "logo.svg")
    expect(frame.get_by_text("Use the account of the arena.")).to_be_visible()
    expect(frame.locator(".site-logo")).to_have_attribute("src", re.compile("data:image/svg"))
    button = frame.get_by_role("button", name="Sign in")
    expect(button).to_have_css("background-color", "rgb(170, 34, 17)")
    dark = page.frame_locator("iframe[title='Sign-in: dark, desktop']")
    expect(dark.locator("body")).to_have_css("background-color", "rgb(16, 18, 25)")
    expect(dark.locator("body")).to_have_css("width", "1280px")
    look(page, "branding")
    page.get_by_role("button", name="Save branding").click()
    expect(page.get_by_role("status")).to_contain_text("The branding has been saved.")
    page.get_by_role("link", name="Branding", exact=True).first.click()
    page.get_by_label("Name").fill("Iron Foundry")
    page.get_by_label("Logo", exact=True).set_input_files(tmp_path / "logo.svg")
    page.get_by_label("Page of the preview").select_option("Confirmation of a device or game")
    first = page.frame_locator("iframe").first
    expect(first.get_by_text("Iron Foundry").first).to_be_visible()
    expect(first.locator("img.logo")).to_have_attribute("src", re.compile("data:application"))
    page.get_by_label("Accent colour").fill("#ffee00")
    expect(page.locator("#preview")).to_contain_text("Must be darker")
    page.get_by_label("Accent colour").fill("#0f766e")
    expect(page.locator("#preview")).to_contain_text("White text on this colour is easy to read")
    look_again(page, "branding-service")
    page.get_by_role("button", name="Save brand").click()
    expect(page.get_by_role("status")).to_contain_text("The brand has been saved.")
    # The brand reaches all workers in a moment.
    assert until(lambda: page.reload() and page.locator(".logo-sample").count())
    expect(page.locator(".logo-sample")).to_have_attribute("src", re.compile("/brand/logo-"))
    page.get_by_label("Name").fill("")
    page.get_by_label("Remove the logo").check()
    with page.expect_navigation():
        page.get_by_role("button", name="Save brand").click()
    assert until(lambda: page.reload() and not page.locator(".logo-sample").count())
