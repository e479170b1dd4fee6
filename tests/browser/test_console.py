"""The admin console in Chromium: one test for each task of an administrator.

Each page that is looked at must fit a phone and a desktop, and axe-core must find nothing serious in both themes.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import HEIGHT, PHONE, open_signed_in
from tests.kit.browser import new_user
from tests.kit.browser_pages import look, look_again, open_console, window
from tests.kit.long_tests import takes_long
from tests.kit.server import Server

__all__ = ["window"]
pytestmark = pytest.mark.browser
ADMINISTRATOR = "7100001"  # a user id


@pytest.fixture(scope="module")
def administrator(server: Server) -> str:
    login = new_user(server, nick="Console Administrator", user_id=ADMINISTRATOR)
    server.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
    return login


def test_menu_of_a_phone_is_operated_with_the_keyboard(page: Page, server: Server, administrator: str) -> None:
    open_signed_in(page, server, administrator)
    page.get_by_role("link", name="Open the admin console").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    look(page, "overview")
    page.set_viewport_size({"width": PHONE, "height": HEIGHT})
    navigation = page.get_by_role("navigation", name="Console")
    expect(navigation).to_be_hidden()
    page.get_by_role("link", name="Menu").focus()
    page.keyboard.press("Enter")
    expect(navigation).to_be_visible()
    page.keyboard.press("Escape")
    expect(navigation).to_be_hidden()
    page.get_by_role("link", name="Menu").click()
    navigation.get_by_role("link", name="Users").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Users")
    expect(navigation).to_be_hidden()


def test_user_is_created_found_while_typing_and_disabled(page: Page, server: Server, administrator: str) -> None:
    open_console(page, server, administrator)
    page.get_by_role("link", name="Users", exact=True).first.click()
    page.get_by_role("link", name="Add user").click()
    look_again(page, "new-user")
    page.get_by_label("E-mail address").fill("typed.in.console@example.com")
    page.get_by_label("Nickname").fill("Typed")
    page.get_by_role("button", name="Create user").click()
    expect(page.get_by_role("status")).to_have_text("The user has been created.")
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="Users").click()
    page.get_by_label("Search users").press_sequentially("typed.in")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    expect(page).to_have_url(f"{server.base_url}/console/users?search=typed.in")
    look_again(page, "users")
    page.get_by_role("link", name="typed.in.console@example.com").click()
    look_again(page, "user")
    page.get_by_role("button", name="Disable user").click()
    expect(page.get_by_role("status")).to_contain_text("disabled")
    page.get_by_role("button", name="Enable user").click()
    page.get_by_role("link", name="Delete account").click()
    look_again(page, "deletion-of-user")
    page.get_by_label("To confirm, type typed.in.console@example.com").fill("typed.in.console@example.com")
    page.get_by_role("button", name="Delete account").click()
    expect(page.get_by_role("status")).to_contain_text("It will be erased on ")
    look(page, "deleted-user")


def test_id_is_shown_and_selected_where_the_browser_has_no_clipboard(
    page: Page, server: Server, administrator: str
) -> None:
    new_user(server, nick="Copied", user_id="7100051")
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/audit?target=7100051")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")  # as over plain http
    page.locator("[data-copy-text='7100051']").first.dispatch_event("click")
    expect(page.locator(".named-id", has_text="7100051").first).to_be_visible()
    assert page.evaluate("getSelection().toString()") == "7100051"


def test_account_of_a_player_is_opened_as_support(page: Page, server: Server, administrator: str) -> None:
    new_user(server, login="opened.by.support@example.com", nick="Opened", user_id="7100041")
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/users/7100041")
    look_again(page, "user")
    page.get_by_role("link", name="Open as support").click()
    look(page, "impersonate")
    page.get_by_label("Reason").fill("ticket 4711")
    page.get_by_role("button", name="Make a link").click()
    look(page, "impersonate-link")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open the account").click()
    account = opened.value
    look(account, "impersonate-question")
    account.get_by_role("button", name="Open the account").click()
    expect(account.get_by_role("status").first).to_contain_text("You are looking at the account of Opened as support.")
    look(account, "impersonated-account")
    account.goto(f"{server.base_url}/account/history")
    expect(account.get_by_text("Account page opened")).to_be_visible()
    expect(account.get_by_text("You cannot change anything.")).to_be_visible()
    account.goto(f"{server.base_url}/account")
    account.get_by_role("button", name="Send a verification e-mail").click()
    expect(account.get_by_text("cannot do this for them")).to_be_visible()
    look(account, "impersonated-refusal")
    account.goto(f"{server.base_url}/account")
    account.get_by_role("button", name="Leave this account").click()
    expect(account.get_by_role("link", name="Open the admin console")).to_be_visible()
    account.close()
    page.goto(f"{server.base_url}/console")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def test_search_over_everything_is_used_with_the_keyboard(page: Page, server: Server, administrator: str) -> None:
    new_user(server, login="keyboard.found@example.com", nick="Found", user_id="7100031")
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/users")
    page.get_by_role("columnheader", name="Registered").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Registered")).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Control+k")
    field = page.get_by_role("dialog").get_by_label("Search the console")
    expect(field).to_be_focused()
    field.press_sequentially("board.found")
    hit = page.get_by_role("dialog").get_by_role("link", name="keyboard.found@example.com")
    expect(hit).to_be_visible()
    look(page, "finder")
    page.keyboard.press("ArrowDown")
    expect(hit).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.press("Enter")  # opens the first hit
    expect(page).to_have_url(f"{server.base_url}/console/users/7100031")


@takes_long
def test_sessions_of_a_user_are_ended(page: Page, server: Server, administrator: str) -> None:
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/users/{ADMINISTRATOR}/sign-ins")
    expect(page.get_by_role("heading", name="Browsers")).to_be_visible()
    look(page, "sign-ins")
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")  # it was the administrator's own browser


@takes_long
def test_change_is_found_in_the_audit_trail_and_undone(page: Page, server: Server, administrator: str) -> None:
    new_user(server, nick="Untouched", user_id="7100002")
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/users/7100002")
    page.get_by_label("Nickname").fill("Touched")
    page.get_by_role("button", name="Save changes").click()
    page.get_by_role("link", name="Changes of this user").click()
    page.get_by_label("Operation").press_sequentially("user.save")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    look(page, "audit")
    page.get_by_role("link", name="user.save").click()
    expect(page.locator(".new")).to_have_text("Touched")
    look(page, "entry")
    page.get_by_role("link", name="Undo this change").click()
    look(page, "undo")
    page.get_by_role("button", name="Undo this change").click()
    expect(page.get_by_role("status")).to_contain_text("undone")
    page.goto(f"{server.base_url}/console/users/7100002")
    expect(page.get_by_label("Nickname")).to_have_value("Untouched")


@takes_long
def test_client_is_created_with_the_wizard(page: Page, server: Server, administrator: str) -> None:
    open_console(page, server, administrator)
    page.get_by_role("link", name="OAuth clients").first.click()
    page.get_by_role("link", name="Add client").click()
    look(page, "framework")
    page.get_by_role("link", name="Express").click()
    page.get_by_label("Client id").fill("browser-made")
    page.get_by_role("button", name="Create client").click()
    expect(page.locator("#program")).to_contain_text('"browser-made"')
    expect(page.get_by_label("Client secret")).not_to_be_empty()
    look(page, "quickstart")
    page.get_by_role("link", name="Go to the client").click()
    look(page, "client")


def test_effect_of_a_role_is_shown_while_typing(page: Page, server: Server, administrator: str) -> None:
    new_user(server, user_id="7100003")
    server.apply(
        {
            "applications": [{"application_id": 7100, "name": "Typed game"}],
            "schemas": {"7100": {"private_data": {"chat": {"mute": {"value": False}}}}},
            "roles": {"7100": [{"name": "moderator", "meta": {}}]},
            "permissions": [{"user_id": "7100003", "application_id": 7100, "data": {"roles": ["moderator"]}}],
        }
    )
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/applications?search=Typed")
    page.get_by_role("link", name="Typed game").click()
    look_again(page, "application")
    page.get_by_role("link", name="moderator").click()
    page.get_by_label("chat.mute").check()
    expect(page.locator("#impact .new")).to_have_text("chat.mute")
    look(page, "role")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("The role has been saved.")
    page.goto(f"{server.base_url}/console/applications/7100/roles/moderator")
    page.get_by_role("link", name="Delete role").click()
    expect(page.locator("#impact .old")).to_have_text("chat.mute")
    look_again(page, "deletion")
    page.get_by_label("To confirm, type moderator").fill("modarator")
    page.get_by_role("button", name="Delete role").click()
    expect(page.locator(".wrong")).to_contain_text("Type the name")
    look_again(page, "deletion-refused")
    page.get_by_label("To confirm, type moderator").fill("moderator")
    page.get_by_role("button", name="Delete role").click()
    expect(page.get_by_role("status").first).to_contain_text("The role has been deleted.")
    look_again(page, "deleted")
    page.get_by_role("status").get_by_role("link", name="Undo").click()
    expect(page.locator("#impact .new")).to_have_text("chat.mute")
    look_again(page, "undo-deletion")
    page.get_by_role("button", name="Undo this change").click()
    expect(page.get_by_role("status")).to_contain_text("undone")
