"""Pages in a real browser: sign-in, windows and pictures."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import (
    DESKTOP,
    LONG,
    PHONE,
    PICTURES,
    SharedWindows,
    Window,
    assert_accessible,
    assert_fits,
    open_signed_in,
    set_width,
    take_pictures,
)
from tests.kit.builders import PASSWORD
from tests.kit.oauth import AUTHORIZE, Site
from tests.kit.server import Server

desktop_only = pytest.mark.parametrize("width", [1280])  # the window size makes no difference


def sign_in(page: Page, server: Server, login: str, password: str = PASSWORD) -> None:
    page.goto(f"{server.base_url}/login")
    page.get_by_label("E-mail").fill(login)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def open_authorization(page: Page, server: Server, site: Site, **parameters: str) -> None:
    """Opens the page to which a site leads its users for a sign-in."""
    page.goto(f"{server.base_url}{AUTHORIZE}?{urlencode(site.query(**parameters))}")


def sign_in_with_scripts(page: Page, server: Server, login: str) -> None:
    """With JavaScript, a password field has a button whose name contains that of the field."""
    page.goto(f"{server.base_url}/login")
    page.locator("#login").fill(login)
    page.locator("#password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


MIN_BUTTON = {PHONE: 44, DESKTOP: 34}  # pixels: a finger on a phone, a mouse on a desktop


@pytest.fixture
def window(shared_windows: SharedWindows) -> Iterator[Window]:
    """A window with JavaScript, which live search and charts use."""
    with shared_windows.use(DESKTOP, scripts=True) as window:
        yield window


def open_console(page: Page, server: Server, administrator: str) -> None:
    open_signed_in(page, server, administrator, "/console")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def look(page: Page, name: str) -> None:
    """Looks at a page on a phone, where it has least space, and in a long run on a desktop.

    Its elements are the same in both, so axe-core looks at them in one. Around its main part, all pages are the same.
    """
    before = page.viewport_size
    for width in (DESKTOP, PHONE) if LONG or PICTURES else (PHONE,):
        set_width(page, width)
        if PICTURES:
            take_pictures(page, f"console-{name}-{width}")
        assert_fits(page, MIN_BUTTON[width], within="main")
        if LONG or width == PHONE:
            assert_accessible(page, "html" if LONG or name == "overview" else "main")
    set_width(page, before["width"] if before else DESKTOP)


def look_again(page: Page, name: str) -> None:
    """Looks at a page that another test looks at, too: in a long run, and for pictures."""
    if LONG or PICTURES:
        look(page, name)
