"""Players in Chromium: the page of a link session, a store account of two accounts, merges, bans, ways to sign in.

Also sign-in with another provider: from the button of a sign-in form to an account, and its account page.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Screenshot, assert_accessible, open_signed_in
from tests.kit import postgres
from tests.kit.browser import new_user
from tests.kit.browser_pages import look, open_authorization, window
from tests.kit.builders import PASSWORD
from tests.kit.game import Game, Session
from tests.kit.guest import FACTOR, Device, bearer
from tests.kit.oauth import Site, close_all, new_site
from tests.kit.server import QUICK, Server, running
from tests.kit.session_tokens import new_application
from tests.upstream import stand_ins
from tests.upstream.player import add_provider, player
from tests.upstream.stand_ins import CodeProvider, Person
from tests.upstream.stores import SteamStore, add_store, link_account, opened

__all__ = ["window"]

FOUNDER = {"name": "founder", "meta": {"private_data": {"vip": {"value": True}}}}


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
    settings |= {"SSO_GUESTS": "on", "SSO_RATE_GUEST": "0", "SSO_APPEAL_URL": "https://example.com/appeal"}
    offline = Server(tmp_path_factory.mktemp("players"), settings)
    add_provider(offline, elsewhere, id="elsewhere", trusted_email=True)
    with running(offline.folder, **settings) as server:
        yield server


@pytest.fixture(scope="module")
def site(server: Server, callback: str) -> Iterator[Site]:
    """A site without a consent page."""
    yield new_site(server, redirect_uri=callback)
    close_all()


@pytest.fixture
def bob(server: Server, width: int) -> str:
    """An account with which the stand-in's person is linked."""
    login = new_user(server, nick="Bob", tags=["vip"])
    link_account(server, "elsewhere", f"both-{width}", login)
    return login


@pytest.fixture
def guest_session(server: Server, width: int) -> tuple[Session, str]:
    """A link session of a guest with a role, whose store account belongs to an account, and the login of that one."""
    login, application = new_user(server, nick="Ann"), new_application(server)
    server.apply({"roles": {str(application): [FOUNDER]}})
    with server.client() as client, Game(server) as game, opened(store := SteamStore()):
        provider_id, subject = add_store(server, store, name="Steam"), str(76561197960265731 + width)
        link_account(server, provider_id, subject, login)
        guest = Device().sign_in(client, gapp_id=application)
        own = {"user_id": guest["user_id"], "application_id": application, "data": {"roles": ["founder"]}}
        server.apply({"permissions": [own]})
        body = {"provider": provider_id, "ticket": store.ticket(subject), "link": "1"}
        assert client.post("/proxy/api/ticket", json=body, headers=bearer(guest)).status_code == 409
        return game.register(bearer(guest), link="1", factor=FACTOR, gapp_id=application), login


@pytest.fixture
def seen(page: Page, screenshot: Screenshot) -> Screenshot:
    """Asserts that a page fits, and that axe-core finds nothing serious."""

    def see(name: str) -> None:
        screenshot(name)
        assert_accessible(page)

    return see


def sign_in(page: Page, login: str, button: str = "Sign in") -> None:
    page.get_by_label("E-mail").fill(login)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name=button).first.click()


def test_guest_decides_and_keeps_the_progress(
    server: Server, guest_session: tuple[Session, str], page: Page, seen: Screenshot
) -> None:
    session, login = guest_session
    page.goto(server.base_url + session.page)
    seen("players-link")
    page.get_by_role("link", name="Decide what happens to it").click()
    seen("players-conflict")
    page.get_by_role("link", name="Sign in to the other account").click()
    sign_in(page, login)
    expect(page.get_by_role("heading", name="Both accounts are yours")).to_be_visible()
    seen("players-conflict-decision")
    page.get_by_role("link", name="Add my progress to this account instead").click()
    expect(page.get_by_role("main")).to_contain_text("founder")
    seen("players-merge-preview")
    page.get_by_role("button", name="Add it to my account and continue").click()
    page.goto(f"{server.base_url}/account")
    expect(page.locator("#identities")).to_contain_text("Steam")
    seen("players-account-links")


def test_owner_of_two_accounts_merges_them(
    server: Server, elsewhere: CodeProvider, bob: str, page: Page, seen: Screenshot, width: int
) -> None:
    elsewhere.person = Person(subject=f"both-{width}", name="Gordon <F>")
    open_signed_in(page, server, new_user(server, nick="Ann"))
    section = page.get_by_role("region", name="Other ways to sign in")
    section.get_by_role("button", name="Link Elsewhere").click()
    expect(page.get_by_role("heading", name="Linked with another account")).to_be_visible()
    page.get_by_role("link", name="Sign in to the other account").click()
    sign_in(page, bob)
    seen("players-merge-accounts")
    page.get_by_role("button", name="Merge the accounts").click()
    expect(page.get_by_role("main")).to_contain_text("Your accounts are one now")
    seen("players-merged")


def test_newcomer_sees_which_game_asks(
    server: Server, elsewhere: CodeProvider, page: Page, seen: Screenshot, width: int
) -> None:
    elsewhere.person = Person(subject=f"new-{width}", email=f"newcomer-{width}@example.com", name="Alyx")
    with server.client() as client, Game(server) as game:
        session = game.register(bearer(Device().sign_in(client)), link="1", factor=FACTOR)
    page.goto(server.base_url + session.page)
    page.get_by_role("link", name="Continue with Elsewhere").click()
    expect(page.get_by_role("main")).to_contain_text(session.match)
    seen("players-newcomer")


def test_banned_player_sees_why(server: Server, page: Page, seen: Screenshot) -> None:
    login = new_user(server)
    server.sso("user", "ban", login, "--until", "2099-01-31", "--reason", "Cheating in ranked games")
    page.goto(f"{server.base_url}/login")
    sign_in(page, login)
    expect(page.get_by_role("main")).to_contain_text("Cheating in ranked games")
    seen("players-banned")


def test_console_merges_and_bans(server: Server, page: Page) -> None:
    administrator, account = new_user(server), new_user(server, nick="Ann")
    server.sso("role", "assign", administrator, "root", "--app", "1", "--yes")
    application = new_application(server)
    server.apply({"roles": {str(application): [FOUNDER]}})
    with server.client() as client:
        guest = Device().sign_in(client)["user_id"]
    own = {"roles": ["founder"]}
    server.apply({"permissions": [{"user_id": guest, "application_id": application, "data": own}]})
    open_signed_in(page, server, administrator, f"/console/users/{guest}/merge")
    look(page, "merge")
    page.get_by_role("textbox", name="Into").fill(account)
    page.get_by_role("button", name="Show what moves").click()
    expect(page.get_by_role("main")).to_contain_text("founder")
    look(page, "merge-preview")
    page.get_by_role("button", name="Merge users").click()
    expect(page.get_by_role("main")).to_contain_text("Merged into this user in the last 7 days")
    look(page, "merges")
    page.get_by_role("button", name="Undo").first.click()
    expect(page.get_by_role("status").first).to_contain_text("The merge has been undone")
    page.goto(f"{server.base_url}/console/users/{guest}/bans")
    look(page, "bans")


# Other providers


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


@pytest.mark.parametrize("is_new", [True, False], ids=["new account", "linked account"])
def test_identity_without_an_account_leads_back_to_the_site(
    server: Server, elsewhere: CodeProvider, site: Site, page: Page, is_new: bool
) -> None:
    """Chromium applies the policy of a page to the redirects that follow its form."""
    elsewhere.person = Person(subject=f"site-{is_new}", email=f"site-{is_new}@example.com", name="Alyx")
    login = new_user(server)
    open_authorization(page, server, site)
    page.get_by_role("link", name="Continue with Elsewhere").click()
    if is_new:
        page.get_by_role("button", name="Create the account").click()
    else:
        page.get_by_role("link", name="Sign in and link").click()
        sign_in(page, login)
        page.get_by_role("button", name="Link", exact=True).click()
    expect(page.get_by_role("heading", name="Back at the site")).to_be_visible()
    assert page.url.startswith(f"{site.redirect_uri}?code=")
