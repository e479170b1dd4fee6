"""Forgotten password and change of the address in Chromium, with and without JavaScript."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Screenshot, assert_accessible, assert_fits, open_signed_in
from tests.kit.browser import new_user
from tests.kit.browser_pages import desktop_only, open_authorization, sign_in
from tests.kit.long_tests import takes_long
from tests.kit.mailbox import link_in, wait_for_mails
from tests.kit.oauth import Site, close_all, new_site
from tests.kit.server import Server

pytestmark = pytest.mark.browser
NEW = "a longer and better one"


@pytest.fixture(scope="module")
def site(server: Server, callback: str) -> Iterator[Site]:
    """A site without a consent page."""
    yield new_site(server, redirect_uri=callback)
    close_all()


def open_reset_form(page: Page, server: Server, login: str) -> None:
    """Asks for the link on a sign-in page, and opens it."""
    page.get_by_role("link", name="Forgot your password?").click()
    page.get_by_label("E-mail").fill(login)
    page.get_by_role("button", name="Send me a link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Check your e-mail")
    page.goto(link_in(wait_for_mails(server, login, "Choose a new password")[-1]))
    assert page.url == f"{server.base_url}/reset"


def test_forgotten_password_without_javascript(page: Page, server: Server, screenshot: Screenshot) -> None:
    login = new_user(server)
    page.goto(f"{server.base_url}/login")
    open_reset_form(page, server, login)
    page.locator("#new_password").fill(NEW)
    page.locator("#repeat_password").fill("something else")
    page.get_by_role("button", name="Change password and sign in").click()
    expect(page.get_by_role("alert")).to_have_text("The new passwords do not match.")
    expect(page.locator("#repeat_password")).to_be_focused()
    screenshot("reset")
    page.locator("#new_password").fill(NEW)
    page.locator("#repeat_password").fill(NEW)
    page.get_by_role("button", name="Change password and sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")


@desktop_only
def test_forgotten_password_leads_back_to_the_site(page: Page, server: Server, site: Site) -> None:
    """Chromium applies the policy of the page to the redirects that follow its form, also after a mistake."""
    login = new_user(server)
    open_authorization(page, server, site)
    open_reset_form(page, server, login)
    page.locator("#new_password").fill(NEW)
    page.locator("#repeat_password").fill("something else")
    page.get_by_role("button", name="Change password and sign in").click()
    expect(page.get_by_role("alert")).to_have_text("The new passwords do not match.")
    page.locator("#new_password").fill(NEW)
    page.locator("#repeat_password").fill(NEW)
    page.get_by_role("button", name="Change password and sign in").click()
    expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
    assert page.url.startswith(f"{site.redirect_uri}?code=")


@takes_long
def test_change_of_the_address_without_javascript(page: Page, server: Server, screenshot: Screenshot) -> None:
    login = new_user(server)
    sign_in(page, server, login)
    page.locator("#email summary").click()
    page.get_by_label("New e-mail address").fill(f"new.{login}")
    screenshot("email")
    page.get_by_role("button", name="Change e-mail address").click()
    expect(page.get_by_role("status")).to_contain_text("We have sent an e-mail to the new address")
    page.goto(link_in(wait_for_mails(server, f"new.{login}", "Confirm your new e-mail address")[0]))
    screenshot("email-link")
    page.get_by_role("button", name="Yes, change the address").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your e-mail address has been changed")
    page.goto(link_in(wait_for_mails(server, login, "was changed")[0]))
    page.get_by_role("button", name="Yes, undo the change").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Choose a new password")


def test_change_of_the_address_with_javascript(scripted: Page, server: Server) -> None:
    login = new_user(server)
    open_signed_in(scripted, server, login)
    form = scripted.locator("form[action='/account/email']")
    scripted.locator("#email summary").filter(has_text="Change").click()
    for wrong, text in (("no address", "Please enter an e-mail address"), (login, "This is already your")):
        form.get_by_label("New e-mail address").fill(wrong)
        form.get_by_role("button", name="Change e-mail address").click()
        expect(scripted.locator("#email").get_by_role("alert")).to_contain_text(text)
        expect(form.get_by_label("New e-mail address")).to_be_focused()
    assert_accessible(scripted)
    form.get_by_label("New e-mail address").fill(f"new.{login}")
    form.get_by_role("button", name="Change e-mail address").click()
    expect(scripted.locator("#email")).to_contain_text(f"Waiting for confirmation of new.{login}")
    assert_accessible(scripted)
    scripted.goto(link_in(wait_for_mails(server, f"new.{login}", "Confirm your new e-mail address")[0]))
    assert_accessible(scripted)
    scripted.get_by_role("button", name="Yes, change the address").click()
    expect(scripted.get_by_role("heading", level=1)).to_have_text("Your e-mail address has been changed")
    undo = link_in(wait_for_mails(server, login, "The e-mail address of your account")[0])
    scripted.goto(undo)
    assert_fits(scripted)
    assert_accessible(scripted)
    scripted.get_by_role("button", name="Yes, undo the change").click()
    expect(scripted.get_by_role("heading", level=1)).to_have_text("Choose a new password")
    scripted.goto(undo)
    expect(scripted.get_by_role("alert")).to_contain_text("This link no longer works.")
    assert_accessible(scripted)


def test_pages_with_javascript(scripted: Page, server: Server) -> None:
    """A button shows the password. axe-core finds nothing serious."""
    login = new_user(server)
    scripted.goto(f"{server.base_url}/login")
    open_reset_form(scripted, server, login)
    field = scripted.locator("#new_password")
    field.fill(NEW)
    scripted.locator("button[aria-controls=new_password]").click()
    expect(field).to_have_attribute("type", "text")
    expect(field).to_be_focused()
    assert_fits(scripted)
    assert_accessible(scripted)
    scripted.locator("button[aria-controls=new_password]").click()
    expect(field).to_have_attribute("type", "password")
    scripted.locator("#repeat_password").fill(NEW)
    scripted.get_by_role("button", name="Change password and sign in").click()
    expect(scripted.get_by_role("heading", level=1)).to_have_text("Your account")
    scripted.goto(f"{server.base_url}/forgot")
    assert_accessible(scripted)
