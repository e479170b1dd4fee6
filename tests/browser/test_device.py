"""The sign-in of a device in Chromium: the code, the words, the decision and its result."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Screenshot
from tests.kit.browser import new_user
from tests.kit.builders import PASSWORD
from tests.kit.device import Device, new_device_site, start_device
from tests.kit.long_tests import takes_long
from tests.kit.server import Server

pytestmark = pytest.mark.browser


@pytest.fixture
def device(server: Server) -> Device:
    site = new_device_site(server, name="Films for TV", policy_uri="https://films.example.com/privacy")
    return start_device(site)


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def confirm_by_code(page: Page, server: Server, device: Device, login: str, take: Screenshot) -> None:
    page.goto(f"{server.base_url}/device")
    heading(page, "Connect a device")
    expect(page.get_by_label("Code")).to_be_focused()
    take("device-code")
    page.get_by_label("Code").fill("BBBB BBBB")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("We do not know this code.")
    expect(page.get_by_label("Code")).to_be_focused()
    take("device-code-wrong")
    page.get_by_label("Code").fill(device.user_code.lower().replace("-", " "))
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("E-mail").fill(login)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    take("device-sign-in")
    page.get_by_role("button", name="Sign in", exact=True).click()
    heading(page, "Let a device sign in to Films for TV?")
    expect(page.locator(".words")).to_have_text(device.match)
    take("device-confirm")
    page.get_by_role("button", name="Continue as Ann Wanderer").click()
    heading(page, "The device is not responding")
    take("device-not-responding")
    assert device.ask().status_code == 200
    page.reload()
    heading(page, "You are signed in")
    take("device-done")


def test_device_is_signed_in_with_its_code(page: Page, server: Server, device: Device, screenshot: Screenshot) -> None:
    confirm_by_code(page, server, device, new_user(server, nick="Ann Wanderer"), screenshot)
    page.goto(f"{server.base_url}/account#sites")
    expect(page.get_by_role("heading", name="Films for TV")).to_be_visible()
    screenshot("device-account")


def test_link_of_a_device_can_be_refused(page: Page, server: Server, device: Device, screenshot: Screenshot) -> None:
    page.goto(device.answer["verification_uri_complete"])
    page.get_by_label("E-mail").fill(new_user(server))
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="This was not me").click()
    heading(page, "Sign-in stopped")
    screenshot("device-stopped")
    assert device.ask().json()["error"] == "access_denied"


@takes_long
def test_device_is_signed_in_with_javascript(scripted: Page, server: Server, device: Device) -> None:
    confirm_by_code(scripted, server, device, new_user(server, nick="Ann Wanderer"), lambda name: None)
