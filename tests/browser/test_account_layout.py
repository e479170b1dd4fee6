"""The layout of the account page in Chromium: its sections, its navigation, and where the browser is after a form."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Screenshot, assert_fits
from tests.browser.test_pages import sign_in
from tests.kit.browser import new_user
from tests.kit.builders import PASSWORD
from tests.kit.server import Server

pytestmark = pytest.mark.browser


def test_navigation_leads_to_every_section(page: Page, server: Server, screenshot: Screenshot) -> None:
    sign_in(page, server, new_user(server, nick="Ann Wanderer"))
    navigation = page.get_by_role("navigation", name="On this page")
    targets = [link.get_attribute("href") or "" for link in navigation.get_by_role("link").all()]
    assert len(targets) == len(set(targets)) == page.locator("main section").count()
    for target in targets:
        navigation.locator(f"a[href='{target}']").click()
        expect(page.locator(target).get_by_role("heading", level=2)).to_be_in_viewport()
        expect(navigation).to_be_in_viewport()
    screenshot("account")


def test_notice_and_error_are_shown_at_their_section(page: Page, server: Server, screenshot: Screenshot) -> None:
    sign_in(page, server, new_user(server, nick="Ann Wanderer"))
    form = page.locator("form[action='/account/password']")
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
