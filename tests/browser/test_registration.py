"""A newcomer in Chromium: from a site with JavaScript, and from a game without, to an account and back."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from sso.accounts.registration.proof_of_work import WAIT_S
from tests.accounts.registration.conftest import OPEN
from tests.browser.conftest import HEIGHT, Screenshot, Window, _thread, assert_accessible
from tests.kit.builders import PASSWORD
from tests.kit.oauth import AUTHORIZE, Site, close_all, new_site
from tests.kit.play import playing
from tests.kit.postgres import Postgres
from tests.kit.registration import mailed_code, mailed_link, mails_to, new_address
from tests.kit.server import Server, running

pytestmark = pytest.mark.browser

BITS = "12"


@pytest.fixture(scope="module")
def open_server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = OPEN | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_REGISTRATION_WORK_BITS": BITS}
    settings |= {"SSO_TERMS_URL": "https://example.com/terms", "SSO_PRIVACY_URL": "https://example.com/privacy"}
    settings |= {"SSO_WORKERS": "1"}
    with running(tmp_path_factory.mktemp("open"), **settings) as server:
        server.apply({"applications": [{"application_id": 7001, "name": "Tanks of the Red Dawn"}]})
        yield server


@pytest.fixture(scope="module")
def shop(open_server: Server, callback: str) -> Iterator[Site]:
    yield new_site(open_server, redirect_uri=callback, consent=True, name="Tank Shop")
    close_all()


@pytest.fixture(params=["scripts", "no-scripts"])
def scripts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "scripts")


@pytest.fixture
def window(chromium: Browser, width: int, scripts: bool) -> Iterator[Window]:
    size = {"width": width, "height": HEIGHT}
    window = _thread.submit(Window, chromium, viewport=size, java_script_enabled=scripts).result()
    yield window
    _thread.submit(window.context.close).result()
    assert window.errors == []


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


@pytest.mark.parametrize("scripts", ["scripts"], indirect=True)
def test_newcomer_of_a_site_registers_with_the_code(
    page: Page, open_server: Server, shop: Site, screenshot: Screenshot
) -> None:
    address = new_address()
    page.goto(f"{open_server.base_url}{AUTHORIZE}?{urlencode(shop.query())}")
    assert_accessible(page, "html")
    page.get_by_role("link", name="Create an account").click()
    heading(page, "Create an account")
    expect(page.get_by_text("to continue to Tank Shop")).to_be_visible()
    expect(page.get_by_label("E-mail")).to_be_focused()
    screenshot("email")
    assert_accessible(page)
    page.get_by_label("E-mail").fill("nobody")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("Please enter an e-mail address")
    expect(page.get_by_label("E-mail")).to_be_focused()
    page.get_by_label("E-mail").fill(address)
    page.get_by_role("button", name="Continue").click()  # waits for the solution of the puzzle
    heading(page, "Check your e-mail")
    screenshot("code")
    assert_accessible(page)
    page.get_by_label("Code").fill(mailed_code(mails_to(open_server, address)[0]))  # which sends the form
    heading(page, "Create your account")
    agreement = page.get_by_text("I accept the terms and have read the privacy policy.")
    page.get_by_label("I accept the terms").check()
    expect(agreement.get_by_role("link", name="terms")).to_have_attribute("href", "https://example.com/terms")
    assert_accessible(page)
    page.get_by_label("Nickname").fill("Ann Wanderer")
    page.get_by_label("Password", exact=True).fill("password")
    page.get_by_role("button", name="Create the account").click()
    expect(page.get_by_role("alert")).to_contain_text("very common password")
    expect(page.get_by_label("Password", exact=True)).to_be_focused()
    expect(page.get_by_label("Nickname")).to_have_value("Ann Wanderer")
    assert_accessible(page)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    heading(page, "Let Tank Shop know who you are?")
    page.get_by_role("button", name="Allow").click()
    heading(page, "Back at the site")


@pytest.mark.parametrize("scripts", ["no-scripts"], indirect=True)
def test_newcomer_of_a_game_registers_with_the_link(page: Page, open_server: Server, screenshot: Screenshot) -> None:
    address = new_address()
    with playing(open_server, "--app-id", "7001") as game:
        page.goto(f"{open_server.base_url}{game.path}")
        page.get_by_role("link", name="Create an account").click()
        # Playwright turns scripts off in a way that does not show <noscript>.
        heading(page, "Create an account")
        assert "Your browser does not run JavaScript." in page.content()
        page.get_by_label("E-mail").fill(address)
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("Please wait another")
        expect(page.get_by_label("E-mail")).to_have_value(address)
        screenshot("wait")
        page.wait_for_timeout(WAIT_S * 1000 + 1000)  # the time that the page asks for
        page.get_by_role("button", name="Continue").click()
        heading(page, "Check your e-mail")
        page.goto(f"{open_server.base_url}{mailed_link(mails_to(open_server, address)[0])}")
        words = game.out.split("these words:\n\n    ")[1].splitlines()[0]
        expect(page.locator(".words")).to_have_text(words)
        screenshot("complete")
        page.get_by_label("Nickname").fill("Ann Wanderer")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_label("I accept the terms").check()
        page.get_by_role("button", name="Create the account and continue to Tanks of the Red Dawn").click()
        assert game.ended() == 0, game.err
        assert "Signed in as Ann Wanderer" in game.out


@pytest.mark.parametrize("scripts", ["scripts"], indirect=True)
def test_form_that_is_sent_early_waits_for_the_solution(page: Page, open_server: Server) -> None:
    page.add_init_script(
        """const start = window.setTimeout, held = [];
        window.setTimeout = (work) => held.push(work);
        window.release = () => { window.setTimeout = start; held.forEach((work) => start(work, 0)); };"""
    )
    page.goto(f"{open_server.base_url}/register")
    page.get_by_label("E-mail").fill(new_address())
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_label("Checking your browser")).to_be_visible()
    page.evaluate("release()")
    heading(page, "Check your e-mail")
