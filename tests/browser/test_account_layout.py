"""The layout of the account page in Chromium: its sections, its navigation, and where the browser is after a form."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Screenshot, assert_accessible, assert_fits, open_signed_in
from tests.kit.browser import new_user
from tests.kit.browser_pages import sign_in, sign_in_with_scripts
from tests.kit.builders import PASSWORD
from tests.kit.long_tests import takes_long
from tests.kit.server import Server

pytestmark = pytest.mark.browser


def test_navigation_leads_to_every_section(page: Page, server: Server, screenshot: Screenshot) -> None:
    open_signed_in(page, server, new_user(server, nick="Ann Wanderer"))
    navigation = page.get_by_role("navigation", name="On this page")
    targets = [link.get_attribute("href") or "" for link in navigation.get_by_role("link").all()]
    assert len(targets) == len(set(targets)) == page.locator("main section").count()
    for target in targets:
        navigation.locator(f"a[href='{target}']").click()
        expect(page.locator(target).get_by_role("heading", level=2)).to_be_in_viewport()
        expect(navigation).to_be_in_viewport()
    screenshot("account")


def test_pages_of_the_account_are_accessible(scripted: Page, server: Server) -> None:
    """axe-core needs JavaScript, which the window of the other tests does not have."""
    login = new_user(server, nick="Ann Wanderer")
    open_signed_in(scripted, server, login)
    scripted.locator("#data summary").filter(has_text="Delete").click()
    assert_accessible(scripted, "html")
    for path in ("/account/history", "/account/totp"):
        scripted.goto(server.base_url + path)
        assert_fits(scripted)
        assert_accessible(scripted)
    scripted.goto(f"{server.base_url}/account")
    scripted.locator("#data summary").filter(has_text="Delete").click()
    scripted.get_by_role("button", name="Delete my account").click()
    expect(scripted.get_by_role("heading", level=1)).to_have_text("Your account is closed")
    sign_in_with_scripts(scripted, server, login)
    expect(scripted.get_by_role("button", name="Keep my account")).to_be_visible()
    assert_fits(scripted)
    assert_accessible(scripted)


def test_user_edits_the_profile(page: Page, server: Server) -> None:
    open_signed_in(page, server, new_user(server, nick="Ann Wanderer"))
    form = page.locator("form[action='/account/profile']")
    form.get_by_label("Nickname").fill("x" * 65)
    form.get_by_label("Country").select_option("Austria")
    form.get_by_role("button", name="Save profile").click()
    expect(page.get_by_role("alert")).to_have_text("Your nickname must have at most 64 characters.")
    expect(form.get_by_label("Nickname")).to_be_focused()
    expect(form.get_by_label("Country")).to_have_value("AT")
    form.get_by_label("Nickname").fill("Bob")
    form.get_by_role("button", name="Save profile").click()
    expect(page.locator("#profile").get_by_role("status")).to_have_text("Your profile has been saved.")
    expect(page.get_by_role("link", name="Bob")).to_be_visible()


@takes_long
def test_user_deletes_the_account_and_keeps_it(page: Page, server: Server, screenshot: Screenshot) -> None:
    login = new_user(server, nick="Ann Wanderer")
    sign_in(page, server, login)
    page.locator("#data summary").filter(has_text="Delete").click()
    page.get_by_role("button", name="Delete my account").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account is closed")
    sign_in(page, server, login)
    expect(page.get_by_role("button", name="Keep my account")).to_be_visible()
    screenshot("closed")
    page.get_by_role("button", name="Keep my account").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    expect(page.locator("#history")).to_contain_text("Deletion of the account cancelled")
    page.locator("#data summary").filter(has_text="Delete").click()
    screenshot("whole")
    page.goto(f"{server.base_url}/account/history")
    screenshot("history")


def test_notice_and_error_are_shown_at_their_section(page: Page, server: Server, screenshot: Screenshot) -> None:
    open_signed_in(page, server, new_user(server, nick="Ann Wanderer"))
    form = page.locator("form[action='/account/password']")
    page.locator("#password summary").click()
    for current in ("wrong", PASSWORD):
        form.get_by_label("Current password").fill(current)
        form.get_by_label("New password", exact=True).fill("a longer and better one")
        form.get_by_label("Repeat new password").fill("a longer and better one")
        form.get_by_role("button", name="Change password").click()
        box = page.locator("#password .box")
        expect(box).to_be_in_viewport()
        if current == "wrong":
            expect(form.get_by_label("Current password")).to_be_focused()
            screenshot("error")
    expect(box).to_contain_text("Your password has been changed.")
    assert_fits(page)
