"""The section "Users", with forms as a browser without scripts sends them."""

import html
from collections.abc import Callable

import orjson
import pytest

from sso.accounts.user_store import GUEST_LOGIN_KEY
from tests.admin.conftest import Administrator
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import Browser, fresh_browser, new_user, query, user_id_of
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.console_pages import PAYLOAD, last_entry, page_of
from tests.perm.endpoints.conftest import Studio


@pytest.fixture
def login(studio: Studio) -> str:
    return new_user(studio.server, nick="Console Visitor", tags=["beta"])


def test_search_finds_users_by_login_nickname_and_id(manager: ConsoleBrowser, login: str) -> None:
    for search in (login, login.upper()[:9], user_id_of(manager.server, login)):
        assert login in manager.open("/console/users", params={"search": search}), search
    assert "No user matches" in manager.open("/console/users", params={"search": "nobody-has-this"})


def test_list_has_pages(manager: ConsoleBrowser, studio: Studio) -> None:
    logins = [f"paged{number:03}@example.com" for number in range(51)]
    studio.server.apply({"users": [{"login": login} for login in logins]})
    first = manager.open("/console/users", params={"search": "paged"})
    assert (logins[49] in first, logins[50] in first) == (True, False)
    next_path = html.unescape(first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0])
    second = manager.open(next_path)
    assert (logins[49] in second, logins[50] in second, 'rel="next"' in second) == (False, True, False)


def test_export_quotes_formulas(manager: ConsoleBrowser, studio: Studio) -> None:
    new_user(studio.server, login="exported@example.com", nick="=1+1", tags=["a", "b"])
    answer = manager.get("/console/users/export.csv", params={"search": "exported"})
    header, line, *rest = answer.text.split("\r\n")
    assert (header.split(",")[:3], rest) == (["user_id", "login", "nick"], [""])
    assert ",exported@example.com,'=1+1,,en,0,a b,," in line
    assert "attachment" in answer.headers["Content-Disposition"]


def test_administrator_creates_and_edits_a_user(manager: ConsoleBrowser) -> None:
    manager.open("/console/users/new")
    answer = manager.submit("/console/users/new", login="not an address", nick="New")
    assert (answer.status_code, "ust " in manager.problem) == (422, True)
    assert 'value="New"' in answer.text
    notice = manager.act("/console/users/new", login="created@example.com", password=PASSWORD, tags="beta, staff")
    assert notice == "The user has been created."
    path = f"/console/users/{user_id_of(manager.server, 'created@example.com')}"
    assert manager.act(path, nick="Created", tags="beta", email_verified="1") == "The changes have been saved."
    entry = last_entry(manager, "user.save")
    assert entry["user_id"] == manager.user_id
    assert entry["address"] == "127.0.0.1"
    row = query(manager.server, "SELECT nick, tags, email_verified FROM users WHERE login = 'created@example.com'")[0]
    assert tuple(row) == ("Created", ["beta"], True)


def test_edit_of_a_nickname_keeps_tags_and_purchases_with_spaces(manager: ConsoleBrowser) -> None:
    lists = {"tags": ["moderator applicant", "beta"], "purchases": ["season pass"]}
    login = new_user(manager.server, **lists)
    path = page_of(manager, login)
    assert manager.act(path, nick="Renamed") == "The changes have been saved."
    row = query(manager.server, "SELECT nick, tags, purchases FROM users WHERE login = $1", login)[0]
    assert dict(row) == {"nick": "Renamed", **lists}


@pytest.mark.parametrize("lang", ["pt", "en-US", ""])
def test_edit_of_a_nickname_keeps_a_language_that_pages_do_not_have(manager: ConsoleBrowser, lang: str) -> None:
    login = new_user(manager.server, lang=lang)
    assert manager.act(page_of(manager, login), nick="Renamed") == "The changes have been saved."
    assert tuple(query(manager.server, "SELECT nick, lang FROM users WHERE login = $1", login)[0]) == ("Renamed", lang)


def test_edit_of_a_user_who_was_changed_meanwhile_is_refused(manager: ConsoleBrowser, login: str) -> None:
    path = page_of(manager, login)
    query(manager.server, "UPDATE users SET nick = 'Other' WHERE login = $1", login)
    answer = manager.submit(path, nick="Mine")
    assert (answer.status_code, "changed this in the meantime" in manager.problem) == (409, True)
    assert query(manager.server, "SELECT nick FROM users WHERE login = $1", login)[0]["nick"] == "Other"


def test_refused_edit_keeps_its_version_so_that_later_changes_of_others_stay(
    manager: ConsoleBrowser, login: str
) -> None:
    taken = new_user(manager.server)
    path = page_of(manager, login)
    query(manager.server, "UPDATE users SET tags = '{beta,staff}' WHERE login = $1", login)
    for typed in (taken, login, login):
        answer = manager.submit(path, login=typed, nick="Mine")
        assert (answer.status_code, "changed this in the meantime" in manager.problem) == (409, True)
    assert query(manager.server, "SELECT tags FROM users WHERE login = $1", login)[0]["tags"] == ["beta", "staff"]
    assert page_of(manager, login) == path  # the page is loaded again
    assert manager.act(path, nick="Mine") == "The changes have been saved."
    assert query(manager.server, "SELECT tags FROM users WHERE login = $1", login)[0]["tags"] == ["beta", "staff"]


def new_guest(manager: ConsoleBrowser, nick: str) -> str:
    """Makes a user a guest. Returns the page."""
    login = new_user(manager.server, nick="Guest")
    user_id = user_id_of(manager.server, login)
    columns = f"login = '', login_key = {GUEST_LOGIN_KEY}, nick = $2, tags = '{{guest}}', password_hash = NULL"
    assert query(manager.server, f"UPDATE users SET {columns} WHERE user_id = $1 RETURNING 1", user_id, nick)
    return f"/console/users/{user_id}"


def test_guest_is_edited_without_the_fields_of_accounts(manager: ConsoleBrowser) -> None:
    path = new_guest(manager, "Guest 7")
    manager.open(path)
    assert {"login", "email_verified"}.isdisjoint(manager.form(path))
    assert manager.act(path, nick="Renamed", tags="guest, beta", level="3") == "The changes have been saved."
    row = query(manager.server, "SELECT nick, tags, level FROM users WHERE user_id = $1", path.rpartition("/")[2])[0]
    assert tuple(row) == ("Renamed", ["guest", "beta"], "3")
    assert "New password" not in manager.open(f"{path}/security")


@pytest.mark.parametrize("nick", ["Wanderer", ""])
def test_guest_is_found_and_deleted_by_nickname_or_id(
    studio: Studio, manager: ConsoleBrowser, root_browser: ConsoleBrowser, nick: str
) -> None:
    studio.project()
    path = new_guest(manager, nick)
    user_id = path.rpartition("/")[2]
    name = nick or user_id
    assert f'<a href="{path}"><bdi>{name}</bdi></a>' in manager.open("/console/users", params={"search": user_id})
    assert f'<a href="{path}"><bdi>{name}</bdi>' in manager.open("/console/search", params={"q": user_id})
    assert f"<bdi>{name}</bdi>" in root_browser.open("/console/explorer", params={"user": user_id, "rule": "any.rule"})
    assert f'name="login" value="{user_id}"' in root_browser.open(f"{path}/roles")
    manager.open(f"{path}/delete")
    answer = manager.submit(f"{path}/delete", name=" ")
    assert (answer.status_code, "Type the name as it is written here" in answer.text) == (422, True)
    assert "has been closed" in manager.act(f"{path}/delete", name=name)


def test_fields_for_addresses_take_those_that_browsers_do_not_know(manager: ConsoleBrowser) -> None:
    """Browsers refuse letters beyond ASCII in fields of the type "email"; the service accepts them."""
    login = new_user(manager.server, login="jörg@example.com")
    for path in (page_of(manager, login), "/console/users/new", "/console/users/invitations/new"):
        page = manager.open(path)
        assert ('type="email"' in page, 'inputmode="email"' in page) == (False, True), path


def test_user_is_disabled_enabled_deleted_and_kept(manager: ConsoleBrowser, login: str) -> None:
    with fresh_browser(manager.server, login) as browser:
        path = page_of(manager, login)
        assert "disabled" in manager.act(f"{path}/disable")
        assert not browser.is_signed_in
    assert manager.act(f"{path}/enable") == "The user can sign in again."
    notice = manager.delete(f"{path}/delete")
    due = query(manager.server, "SELECT deletion_due FROM users WHERE login = $1", login)[0]["deletion_due"]
    assert notice == f"The account has been closed. It will be erased on {due.day} {due:%B %Y}."
    assert f"Will be deleted on {due.day} {due:%B}" in manager.page.text
    assert "cancelled" in manager.act(f"{path}/enable")


def disable_by_api(studio: Studio, manager: ConsoleBrowser, login: str) -> None:
    path = f"/users/{user_id_of(studio.server, login)}"
    assert Administrator.of(studio.root).request("PATCH", path, json={"disabled": True}).status_code == 200


def disable_in_the_console(studio: Studio, manager: ConsoleBrowser, login: str) -> None:
    assert "disabled" in manager.act(f"{page_of(manager, login)}/disable")


def disable_by_command(studio: Studio, manager: ConsoleBrowser, login: str) -> None:
    studio.server.sso("user", "disable", login)


@pytest.mark.parametrize("disable", [disable_by_api, disable_in_the_console, disable_by_command])
def test_closed_account_that_is_disabled_cannot_be_kept_by_its_user(
    studio: Studio, manager: ConsoleBrowser, login: str, disable: Callable[[Studio, ConsoleBrowser, str], None]
) -> None:
    """Disabling has the same effect and leaves the same audit entry, whichever way the administrator takes."""
    with fresh_browser(studio.server, login) as browser:
        browser.open_account()
        assert browser.submit("/account/delete").status_code == 200
        assert browser.sign_in(login).status_code == 403  # the page that offers to keep the account
        disable(studio, manager, login)
        assert browser.submit("/login/keep").headers["Location"] == "/login"
        assert browser.sign_in(login).status_code == 401
    page = manager.open(page_of(manager, login))
    assert ("Will be deleted on" in page, "Disabled" in page) == (True, True)
    sql = "SELECT before, after FROM audit WHERE target = $1 AND operation = 'user.save'"
    (entry,) = query(studio.server, sql, user_id_of(studio.server, login))
    values = [orjson.loads(entry[name]) for name in ("before", "after")]
    assert values == [{"deletion_by": "user"}, {"deletion_by": "disabled"}]


def test_sessions_are_listed_and_ended(manager: ConsoleBrowser, login: str) -> None:
    with fresh_browser(manager.server, login) as one, fresh_browser(manager.server, login) as other:
        path = page_of(manager, login, "/sign-ins")
        ended = query(manager.server, "SELECT id FROM browser_sessions WHERE user_id = $1", path.rpartition("/")[2])[0]
        assert manager.act(f"{path}/sessions/{ended['id']}/end") == "That browser has been signed out."
        assert sorted([one.is_signed_in, other.is_signed_in]) == [False, True]
        assert "everywhere" in manager.act(f"{path}/sessions/end")
        assert (one.is_signed_in, other.is_signed_in) == (False, False)
        assert "not signed in with any browser" in manager.page.text


def test_factors_are_removed_and_a_password_is_set(manager: ConsoleBrowser) -> None:
    login = new_user(manager.server, totp_secret=TOTP_SECRET)
    path = page_of(manager, login, "/security")
    assert "removed" in manager.act(f"{path}/factors/reset")
    assert "new password" in manager.act(f"{path}/password", password="another long password")
    with Browser(manager.server) as browser:
        assert browser.sign_in(login, "another long password").status_code == 303


def test_invitation_is_created_and_revoked(studio: Studio, manager: ConsoleBrowser) -> None:
    """The shared server has no registration, so that invitations are refused with the reason."""
    assert "Set <code>SSO_REGISTRATION</code> to <code>invite</code>" in manager.open("/console/users/invitations/new")
    answer = manager.submit("/console/users/invitations", login="invited@example.com")
    assert (answer.status_code, "SSO_REGISTRATION" in manager.problem) == (409, True)


def test_manager_cannot_change_root(manager: ConsoleBrowser, studio: Studio) -> None:
    path = f"/console/users/{studio.root.user_id}"
    manager.open(path)
    answer = manager.send(f"{path}/disable")
    assert (answer.status_code, "the role root is required" in answer.text) == (403, True)


def test_proof_is_asked_for_and_the_action_goes_on(studio: Studio, login: str) -> None:
    with console_browser(studio, "can_manage_users") as browser:
        path = page_of(browser, login, "/security")
        browser.forget_authentication()
        answer = browser.submit(f"{path}/password", password="another long password")
        assert (answer.status_code, "Confirm that it is you" in answer.text) == (403, True)
        answer = browser.submit(f"{path}/password", current_password="wrong")
        assert (answer.status_code, "incorrect" in browser.problem) == (422, True)
        assert "new password" in browser.act(f"{path}/password", current_password=PASSWORD)
        with Browser(studio.server) as user:
            assert user.sign_in(login, "another long password").status_code == 303


@pytest.mark.parametrize(
    "change", [{"login": "taken.over@example.com"}, {"tags": "beta, staff"}, {"purchases": "gold"}]
)
def test_edit_that_may_give_access_needs_proof(studio: Studio, login: str, change: dict[str, str]) -> None:
    user_id = user_id_of(studio.server, login)
    stored = "SELECT login, nick, tags, purchases FROM users WHERE user_id = $1"
    with console_browser(studio, "can_manage_users") as browser:
        path = page_of(browser, login)
        browser.forget_authentication()
        assert browser.act(path, nick="Renamed") == "The changes have been saved."  # nothing that gives access
        before = query(studio.server, stored, user_id)
        answer = browser.submit(path, **change)
        assert (answer.status_code, "Confirm that it is you" in answer.text) == (403, True)
        assert query(studio.server, stored, user_id) == before
        assert browser.act(path, current_password=PASSWORD) == "The changes have been saved."
    (name, value), row = *change.items(), query(studio.server, stored, user_id)[0]
    assert (row["nick"], row[name]) == ("Renamed", value if name == "login" else value.split(", "))


def test_values_of_users_are_escaped_everywhere(manager: ConsoleBrowser, root_browser: ConsoleBrowser) -> None:
    login = new_user(manager.server, nick=PAYLOAD[:60], country=PAYLOAD[:60], phone=PAYLOAD[:60], meta={"a": PAYLOAD})
    path = page_of(manager, login)
    manager.act(path, nick=PAYLOAD[::-1][:60])
    entry = last_entry(manager, "user.save")["id"]
    paths = [path, f"{path}/sign-ins", f"{path}/security", f"{path}/permissions", f"/console/users?search={login}"]
    for page in [*paths, "/console/audit", f"/console/audit/{entry}"]:
        text = root_browser.get(page).text
        assert "<script>alert" not in text, page
        assert "<img src=x" not in text, page
