"""Branded pages and mails, and the language switcher, in Chromium."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sso.core.brand import Brand, parse_accent
from sso.core.language import Text
from sso.mail.content import MailContent, render
from tests.browser.conftest import Screenshot, open_signed_in
from tests.kit.browser import new_user
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

pytestmark = pytest.mark.browser
LOGO = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 32"><rect width="120" height="32" fill="#a21"/>
<script>document.documentElement.setAttribute("data-ran", "1")</script></svg>"""


@pytest.fixture(scope="module")
def branded(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("branded")
    (folder / "logo.svg").write_text(LOGO)
    settings = {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_WORKERS": "1",
        "SSO_BRAND_NAME": "Iron Foundry",
        "SSO_BRAND_LOGO": str(folder / "logo.svg"),
        "SSO_BRAND_ACCENT": "#aa2211",
        "SSO_SUPPORT_URL": "mailto:help@example.com",
        "SSO_PRIVACY_URL": "https://example.com/privacy",
        "SSO_TERMS_URL": "https://example.com/terms",
        "SSO_SIGNIN_TEXT": "Use the account of your game.",
    }
    with running(folder, **QUICK, **settings) as server:
        yield server


@pytest.fixture
def login(branded: Server) -> str:
    return new_user(branded)


def test_pages_have_logo_colour_and_links(page: Page, branded: Server, login: str, screenshot: Screenshot) -> None:
    page.goto(f"{branded.base_url}/login")
    assert page.locator("img.logo").evaluate("image => image.naturalWidth") > 0
    assert (
        page.get_by_role("button", name="Sign in").evaluate("button => getComputedStyle(button).backgroundColor")
        == "rgb(170, 34, 17)"
    )
    screenshot("login")
    page.get_by_label("E-mail").fill(login)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name="Privacy")).to_be_visible()
    screenshot("account")


def test_language_switcher_keeps_the_page(page: Page, branded: Server, screenshot: Screenshot) -> None:
    page.goto(f"{branded.base_url}/login?next=/account/totp")
    page.locator("summary", has_text="English").click()
    screenshot("switcher")
    page.get_by_role("link", name="Deutsch").click()
    expect(page.get_by_role("heading", name="Anmelden")).to_be_visible()
    assert page.url.endswith("/login?next=/account/totp")
    expect(page.locator("summary", has_text="Deutsch")).to_be_visible()


def test_mails_fit(page: Page, screenshot: Screenshot, tmp_path: Path) -> None:
    brand = Brand("Iron Foundry", parse_accent("#aa2211"), support_url="mailto:help@example.com")
    mails = {
        "code": MailContent(
            Text("Your sign-in code for %(service)s", service=brand.name),
            (Text("Your sign-in code is"),),
            (Text("It works once and expires in %(minutes)s minutes.", minutes=10),),
            code="123456",
        ),
        "link": MailContent(
            Text("Reset your password"),
            (Text("Somebody asked for a new password for your account."),),
            (Text("If this was not you, ignore this e-mail."),),
            link="https://sso.example.com/reset?token=" + "x" * 43,
            link_label=Text("Choose a new password"),
        ),
    }
    for name, content in mails.items():
        page.set_content(render(content, "en", brand).html)
        screenshot(f"mail-{name}")


@pytest.mark.parametrize("width", [390])
def test_badges_stand_beside_their_headings_on_a_phone(page: Page, branded: Server, login: str) -> None:
    for language in ("en", "de"):
        page.set_extra_http_headers({"Accept-Language": language})
        open_signed_in(page, branded, login)
        assert page.locator("html").get_attribute("lang") == language
        headings = page.locator(
            "#two-step h3:has(> .badge), section[aria-labelledby=two-step-title] h3:has(> .badge)"
        ).all()
        assert headings
        for heading in headings:
            box, badge = heading.bounding_box(), heading.locator(".badge").bounding_box()
            assert box
            assert badge
            assert badge["y"] < box["y"] + 24  # on the first line
