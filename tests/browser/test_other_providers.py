"""Sign-in with another provider in Chromium: from the button of a sign-in form to an account, and its account page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Screenshot
from tests.kit import postgres
from tests.kit.builders import PASSWORD
from tests.kit.server import QUICK, Server, running
from tests.upstream import stand_ins
from tests.upstream.player import add_provider, player
from tests.upstream.stand_ins import CodeProvider, Person


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[CodeProvider]:
    provider = CodeProvider()
    with stand_ins.running(provider):
        yield provider


@pytest.fixture(scope="module")
def server(
    elsewhere: CodeProvider, postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_REGISTRATION": "open", "SSO_WORKERS": "1"}
    offline = Server(tmp_path_factory.mktemp("providers"), settings)
    add_provider(offline, elsewhere, id="elsewhere", trusted_email=True)
    with running(offline.folder, **settings) as server:
        yield server


def test_player_links_signs_in_and_unlinks(
    server: Server, elsewhere: CodeProvider, page: Page, screenshot: Screenshot, width: int
) -> None:
    elsewhere.person = Person(subject=f"person-{width}", email=f"gordon-{width}@example.com", name="Gordon <F>")
    login = player(server).login
    page.goto(f"{server.base_url}/login")
    screenshot("login")
    page.get_by_role("link", name="Continue with Elsewhere").click()
    expect(page.get_by_role("heading", name="No account yet")).to_be_visible()
    screenshot("unknown-identity")
    page.get_by_role("link", name="Sign in and link").click()
    screenshot("link-login")
    page.get_by_label("E-mail").fill(login)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Link your accounts")).to_be_visible()
    screenshot("link-identity")
    page.get_by_role("button", name="Link", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Your accounts are linked.")
    screenshot("account")
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_role("link", name="Continue with Elsewhere").click()
    expect(page).to_have_url(f"{server.base_url}/account")
    section = page.get_by_role("region", name="Other ways to sign in")
    expect(section).to_contain_text("Gordon <F>")
    section.get_by_text("Remove", exact=False).first.click()
    section.get_by_label("Current password").first.fill(PASSWORD)
    screenshot("unlink")
    section.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status")).to_contain_text("The link has been removed.")
    # The form "Link" leads to the provider and back, although the policy of the page allows no redirects of forms.
    section.get_by_role("button", name="Link Elsewhere").click()
    expect(page.get_by_role("status")).to_contain_text("Your accounts are linked.")


def test_player_creates_an_account(server: Server, elsewhere: CodeProvider, page: Page, width: int) -> None:
    elsewhere.person = Person(subject=f"new-{width}", email=f"new-{width}@example.com", name="Alyx")
    page.goto(f"{server.base_url}/login/upstream/elsewhere")
    expect(page.get_by_label("Nickname")).to_have_value("Alyx")
    page.get_by_role("button", name="Create the account").click()
    expect(page).to_have_url(f"{server.base_url}/account")
    expect(page.get_by_role("main")).to_contain_text(f"new-{width}@example.com")
    expect(page.locator("#password").get_by_role("link", name="Send me a link")).to_be_visible()
    page.get_by_role("button", name="Remove Elsewhere").click()
    expect(page.get_by_role("alert")).to_contain_text("Set a password first")
    expect(page.get_by_role("alert")).to_be_focused()
