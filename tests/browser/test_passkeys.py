"""Passkeys in Chromium with its virtual authenticator: registration, sign-in, autofill, second factor, removal."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import CDPSession, Page, expect

from tests.browser.conftest import (
    HEIGHT,
    PICTURES,
    Screenshot,
    Window,
    _thread,
    assert_accessible,
    assert_fits,
    take_pictures,
)
from tests.kit import postgres
from tests.kit.browser import forget_authentication, new_user
from tests.kit.builders import PASSWORD
from tests.kit.long_tests import takes_long
from tests.kit.mailbox import link_in, wait_for_mails
from tests.kit.server import QUICK, Server, running

pytestmark = pytest.mark.browser

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
desktop_only = pytest.mark.parametrize("width", [1280])  # the window size makes no difference


def as_localhost(server: Server) -> str:
    """Returns the address of a server. Browsers allow no passkeys for an IP address."""
    return server.base_url.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def site(server: Server) -> str:
    return as_localhost(server)


@pytest.fixture
def strict(postgres_server: postgres.Postgres, tmp_path: Path) -> Iterator[Server]:
    """A server where administrators need a second factor."""
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_REQUIRE_2FA": "admins"}
    with running(tmp_path, **settings) as server:
        yield server


@pytest.fixture
def window(chromium: Chromium, width: int) -> Iterator[Window]:
    """A window with JavaScript, which passkeys need."""
    window = _thread.submit(Window, chromium, viewport={"width": width, "height": HEIGHT}).result()
    yield window
    _thread.submit(window.context.close).result()
    assert window.errors == []


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server, nick="Ann Wanderer")


def add_authenticator(page: Page, **options: object) -> tuple[CDPSession, str]:
    device = page.context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    answer = device.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR | options})
    return device, str(answer["authenticatorId"])


def sign_in(page: Page, site: str, login: str) -> None:
    page.goto(f"{site}/login")
    page.get_by_label("E-mail").fill(login)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_out(page: Page) -> None:
    page.get_by_role("button", name="Sign out", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def register(page: Page, name: str = "My laptop") -> None:
    page.get_by_text("Add a passkey").first.click()
    page.get_by_label("Name", exact=True).first.fill(name)
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("status")).to_contain_text("Your passkey has been added.")


@pytest.fixture
def screenshot(page: Page) -> Screenshot:
    """Asserts that the page fits and is accessible, and takes pictures if they are wanted."""

    def take(name: str) -> None:
        if PICTURES:
            take_pictures(page, name)
        assert_accessible(page)
        assert_fits(page)

    return take


def test_passkey_from_registration_to_removal(
    page: Page, server: Server, site: str, login: str, screenshot: Screenshot
) -> None:
    # The autofill is answered at once, so the presence of the user is simulated only where it is asked for.
    device, authenticator = add_authenticator(page)
    sign_in(page, site, login)
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    register(page)
    expect(page.locator(".codes code")).to_have_count(10)
    assert_fits(page)

    # The authenticator answers the request of the autofill, like a user who chooses the passkey there.
    page.get_by_role("button", name="Sign out", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    expect(page.get_by_text("Last used now").first).to_be_visible()

    device.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": authenticator, "enabled": False})
    sign_out(page)
    screenshot("login-with-passkey")
    device.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": authenticator, "enabled": True})
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    expect(page.get_by_text("Last used now").first).to_be_visible()

    device.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": authenticator, "enabled": False})
    sign_out(page)
    sign_in(page, site, login)
    expect(page.get_by_role("heading", level=1)).to_have_text("Use your passkey")
    assert_fits(page)
    page.get_by_text("Lost your passkey?").click()
    expect(page.get_by_label("Recovery code")).to_be_visible()
    screenshot("second-step-lost-phone")
    device.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": authenticator, "enabled": True})
    page.get_by_role("button", name="Use your passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")

    forget_authentication(server)
    page.reload()
    page.get_by_text("Turn on codes by e-mail").click()
    page.get_by_role("button", name="Use a passkey instead").locator("visible=true").click()
    expect(page.get_by_role("status")).to_contain_text("Your change has been saved.")

    page.get_by_text("Change My laptop").click()
    screenshot("passkey-change")
    page.get_by_role("button", name="Remove passkey").click()
    expect(page.get_by_role("status")).to_contain_text("The passkey has been removed.")
    device.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": authenticator, "enabled": False})
    sign_out(page)
    sign_in(page, site, login)
    expect(page.get_by_role("heading", level=1)).to_have_text("Enter your code")  # of the e-mail: no passkey is left


@takes_long
def test_required_second_factor_is_set_up_with_a_passkey(page: Page, strict: Server, screenshot: Screenshot) -> None:
    login = new_user(strict)
    permission = {"user_id": login, "application_id": 1, "data": {"roles": ["root"], "private_data": {}}}
    strict.apply({"permissions": [permission]})
    add_authenticator(page)
    sign_in(page, as_localhost(strict), login)
    expect(page.get_by_role("heading", level=1)).to_have_text("Protect your account")
    screenshot("enrol")
    page.get_by_text("Add a passkey").first.click()
    screenshot("enrol-passkey")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Save your recovery codes")
    screenshot("recovery-codes")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as a text file").click()
    assert len(re.findall(r"\d{4}-\d{4}-\d{4}", download.value.path().read_text())) == 10
    page.get_by_role("link", name="I have saved them, continue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")


@desktop_only
def test_buttons_for_passkeys_are_hidden_without_javascript(plain: Page, site: str, login: str) -> None:
    plain.goto(f"{site}/login")
    expect(plain.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
    sign_in(plain, site, login)
    plain.get_by_text("Add a passkey").first.click()
    expect(plain.locator("form[action='/account/passkeys'] noscript p")).to_be_visible()
    expect(plain.get_by_role("button", name="Add a passkey")).to_be_hidden()


@desktop_only
def test_refused_passkey_shows_an_error_and_the_password_still_works(page: Page, site: str, login: str) -> None:
    add_authenticator(page)  # without a passkey
    page.goto(f"{site}/login")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("That did not work.")
    sign_in(page, site, login)
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")


@takes_long
def test_passkey_is_the_second_factor_of_a_reset(
    page: Page, server: Server, site: str, login: str, screenshot: Screenshot
) -> None:
    device, authenticator = add_authenticator(page)
    sign_in(page, site, login)
    register(page)
    device.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": authenticator, "enabled": False})
    sign_out(page)
    page.get_by_role("link", name="Forgot your password?").click()
    page.get_by_label("E-mail").fill(login)
    page.get_by_role("button", name="Send me a link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Check your e-mail")
    page.goto(link_in(wait_for_mails(server, login, "Choose a new password")[0]).replace("127.0.0.1", "localhost"))
    fill_reset_form(page)
    page.get_by_label("Two-step sign-in code").fill("000000000000")
    page.get_by_role("button", name="Change password and sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("This code is incorrect")
    screenshot("reset-with-passkey")
    fill_reset_form(page)
    device.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": authenticator, "enabled": True})
    page.get_by_role("button", name="Change password with your passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    expect(page.get_by_role("status")).to_contain_text("Your password has been changed.")


def fill_reset_form(page: Page) -> None:
    for field in ("#new_password", "#repeat_password"):
        page.locator(field).fill("a longer and better one")
