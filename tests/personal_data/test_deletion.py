"""The deletion of an account, over HTTP: it is closed at once, can be kept for some days, and is then erased."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio

from sso.services import Services
from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, query, user_id_of
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game
from tests.kit.mailbox import wait_for_mails
from tests.kit.passkey_sign_in import new_passkey, passkey_sign_in, register
from tests.kit.server import Server, until
from tests.personal_data.conftest import (
    api_login,
    delete_account,
    erase,
    is_erased,
    make_due,
    unique_user,
    with_services,
)

pytestmark = pytest.mark.two_workers


@pytest.fixture
def login(server: Server) -> str:
    return unique_user(server)


@pytest.fixture
def browser(server: Server, login: str) -> Iterator[Browser]:
    with fresh_browser(server, login) as browser:
        yield browser


def keep(browser: Browser, login: str, **fields: str) -> int:
    """Signs in to a closed account and presses the button that keeps it."""
    assert browser.sign_in(login).status_code == 403
    return browser.submit("/login/keep", **fields).status_code


def test_deletion_closes_the_account_at_once(browser: Browser, server: Server, login: str) -> None:
    token = api_login(server, login)["token"]
    with fresh_browser(server, login) as other:
        delete_account(browser)
        assert not other.is_signed_in
    assert not browser.is_signed_in
    assert browser.http.post("/proxy/api/login", json={"token": token}).status_code == 401
    assert browser.sign_in(login, "wrong").status_code == 401  # which does not tell that the account is closed
    assert browser.problem == "The e-mail address or password is incorrect."
    (mail,) = wait_for_mails(server, login, "Your 127.0.0.1 account will be deleted")
    assert "will be deleted" in mail
    refused = api_login(server, login)
    assert refused["http"] == 403
    assert re.search(r"will be deleted on \d{4}-\d\d-\d\d: sign in with a browser to keep it", str(refused))


def test_account_is_kept_by_signing_in_and_confirming(browser: Browser, server: Server, login: str) -> None:
    delete_account(browser)
    browser.get("/login?next=/account/history")
    assert browser.submit("/login", login=login, password=PASSWORD).status_code == 403
    assert "Keep my account" in browser.page.text
    assert not browser.is_signed_in
    answer = browser.submit("/login/keep")
    assert answer.headers["Location"] == "/account/history"
    page = browser.follow(answer).text
    assert "Deletion of the account requested" in page
    assert "Deletion of the account cancelled" in page
    assert api_login(server, login)["http"] == 200
    # The session is as fresh as the sign-in of its ticket, which has its time in whole seconds.
    sql = """SELECT bool_and(s.created = date_trunc('second', s.created) AND s.authenticated = s.created) AS is_old
        FROM browser_sessions s JOIN users USING (user_id) WHERE login = $1"""
    assert query(server, sql, login)[0]["is_old"]
    make_due(server, login)  # has no effect on an enabled account
    query(server, "UPDATE users SET deletion_due = NULL WHERE login = $1", login)
    assert wait_for_mails(server, login, "Your 127.0.0.1 account is kept")


def test_account_is_kept_after_the_sign_in_that_led_to_it_has_ended(
    browser: Browser, server: Server, login: str
) -> None:
    delete_account(browser)
    with Game(server) as game:
        session = game.register()
        browser.get(session.page)
        assert browser.submit("/login", login=login, password=PASSWORD).status_code == 403
        query(server, "UPDATE game_sessions SET ends = now() - interval '1 s' WHERE gsid = $1", session.gsid)
        assert browser.submit("/login/keep").headers["Location"] == "/account?done=kept#profile"
    assert browser.is_signed_in


def test_keeping_asks_for_the_second_factor(server: Server) -> None:
    login, app = unique_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        browser.submit("/login/code", otp=app.code())
        delete_account(browser)
        assert keep(browser, login) == 401
        assert browser.problem
        assert browser.submit("/login/keep", otp=app.wrong()).status_code == 401
        assert browser.submit("/login/keep", otp=app.code()).status_code == 303
        assert browser.is_signed_in


def test_closed_account_is_kept_with_a_passkey(browser: Browser, server: Server, login: str) -> None:
    passkey = new_passkey(server)
    browser.follow(register(browser, passkey))
    delete_account(browser)
    with Browser(server) as other:
        assert passkey_sign_in(other, passkey).status_code == 403
        assert "Keep my account" in other.page.text
        assert not other.is_signed_in
        assert "otp" not in other.form("/login/keep")  # the passkey has proved both factors
        assert other.submit("/login/keep").status_code == 303
        assert other.is_signed_in


def test_ticket_of_another_browser_keeps_nothing(browser: Browser, server: Server, login: str) -> None:
    delete_account(browser)
    assert browser.sign_in(login).status_code == 403
    ticket = browser.form("/login/keep")["ticket"]
    with Browser(server) as stranger:
        stranger.get("/login")
        csrf = stranger.form("/login")["csrf"]
        for forged in (ticket, "", "x", ticket[:-2]):
            answer = stranger.post("/login/keep", {"csrf": csrf, "ticket": forged})
            assert answer.headers["Location"] == "/login"
    assert api_login(server, login)["http"] == 403


def test_ticket_is_void_after_another_deletion(browser: Browser, server: Server, login: str) -> None:
    delete_account(browser)
    assert browser.sign_in(login).status_code == 403
    old_form = browser.form("/login/keep")
    with Browser(server) as other:
        assert keep(other, login) == 303
        delete_account(other)
    assert browser.post("/login/keep", old_form).headers["Location"] == "/login"
    assert api_login(server, login)["http"] == 403


def test_form_without_recent_authentication_asks_for_the_password(browser: Browser, server: Server, login: str) -> None:
    query(server, """UPDATE browser_sessions SET authenticated = now() - interval '1 hour'
        FROM users u WHERE u.user_id = browser_sessions.user_id AND login = $1""", login)  # fmt: skip
    for action in ("/account/delete", "/account/export"):
        browser.open_account()
        assert browser.submit(action, current_password="wrong").status_code == 422
        assert browser.problem == "Your current password is incorrect."
        fields = {"csrf": browser.form(action)["csrf"]}
        assert browser.post(action, fields).status_code == 422
    assert browser.is_signed_in
    assert browser.submit("/account/delete", current_password=PASSWORD).status_code == 200


ROOTS = """SELECT user_id FROM users JOIN role_assignments USING (user_id)
    WHERE application_id = 1 AND name = 'root' AND NOT disabled"""


def test_only_the_last_administrator_of_the_service_cannot_be_deleted(server: Server) -> None:
    root = {"application_id": 1, "data": {"roles": ["root"]}}
    first, second = unique_user(server), unique_user(server)
    others = [row["user_id"] for row in query(server, ROOTS)]  # of other tests
    query(server, "UPDATE users SET disabled = true WHERE user_id = ANY ($1)", others)
    try:
        server.apply({"permissions": [{"user_id": login, **root} for login in (first, second)]})
        with fresh_browser(server, first) as browser:
            delete_account(browser)
        with fresh_browser(server, second) as browser:
            browser.open_account()
            assert browser.submit("/account/delete").status_code == 409
            assert "only administrator of the service" in browser.problem
            assert browser.is_signed_in
        refused = server.sso("user", "delete", second, "--yes", check=False)
        assert refused.returncode == 1
        assert "only administrator of the service" in refused.stderr
    finally:
        query(server, "UPDATE users SET disabled = false WHERE user_id = ANY ($1)", others)
        user_id = user_id_of(server, second)
        query(server, "DELETE FROM role_assignments WHERE application_id = 1 AND user_id = $1", user_id)


def test_last_administrator_of_a_project_cannot_be_deleted(server: Server) -> None:
    login = unique_user(server)
    user_id = user_id_of(server, login)
    project = f"p{user_id}"
    member = {"user_id": user_id, "roles": {"project": ["admin"]}}
    server.apply({"projects": [{"id": project, "title": f"Project {user_id}"}]})
    server.apply({"memberships": [{"id": project, "users": [member]}]})
    with fresh_browser(server, login) as browser:
        browser.open_account()
        assert browser.submit("/account/delete").status_code == 409
        assert f"only administrator of the project Project {user_id}" in browser.problem
    other = {**member, "user_id": user_id_of(server, unique_user(server))}
    server.apply({"memberships": [{"id": project, "users": [member, other]}]})
    with fresh_browser(server, login) as browser:
        delete_account(browser)


def test_closed_account_cannot_be_enabled_and_a_disabled_one_not_kept(server: Server, login: str) -> None:
    server.sso("user", "delete", login, "--yes")
    shown = server.sso("user", "show", login, "--json").stdout
    assert '"deletion_by":"operator"' in shown.replace(" ", "")
    assert "deleted" in server.sso("user", "list", "--search", login).stdout
    answer = api_login(server, login)
    assert (answer["http"], "ask support to keep it" in answer["error"]) == (403, True), answer
    with Browser(server) as browser:
        page = browser.sign_in(login)
        assert (page.status_code, "Your account is closed" in page.text) == (403, True)
        assert ("ask support before that day" in page.text, "/login/keep" in page.text) == (True, False)
        assert "is closed" not in browser.sign_in(login, "a wrong password").text
    assert server.sso("user", "enable", login, check=False).returncode == 1
    assert "is kept" in server.sso("user", "restore", login).stdout
    assert api_login(server, login)["http"] == 200
    with fresh_browser(server, login) as browser:
        delete_account(browser)
    server.sso("user", "disable", login)
    assert api_login(server, login)["http"] == 401
    assert "disabled" in server.sso("user", "restore", login).stdout
    assert api_login(server, login)["http"] == 401
    assert server.sso("user", "restore", login, check=False).returncode == 1


def test_command_erases_at_once(server: Server, login: str) -> None:
    user_id = user_id_of(server, login)
    refused = server.sso("user", "delete", login, "--now", check=False, stdin="n\n")
    assert (refused.returncode, f"Erase {login} (user " in refused.stdout) == (1, True)
    assert "nothing is deleted" in refused.stderr
    assert "is erased" in server.sso("user", "delete", login, "--now", "--yes").stdout
    assert query(server, "SELECT FROM users WHERE user_id = $1", user_id) == []
    missing = server.sso("user", "delete", login, "--now", "--yes", check=False)
    assert f"there is no user {login}" in missing.stderr


def test_account_is_erased_by_one_of_two_workers(server: Server) -> None:
    logins = [unique_user(server) for _ in range(3)]
    user_ids = [user_id_of(server, login) for login in logins]
    for login in logins:
        with fresh_browser(server, login) as browser:
            delete_account(browser)
        make_due(server, login)

    async def race(services: Services) -> list[int]:
        counts: list[int] = []

        async def erase_due() -> None:
            counts.append(await services.erasure.erase_due())

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(erase_due)
        return counts

    assert sum(with_services(server, race)) <= 3  # the workers of the server erase accounts, too
    assert until(lambda: query(server, "SELECT FROM users WHERE login = ANY($1)", logins) == [])
    erased = "SELECT target FROM audit WHERE operation = 'user.erase' AND target = ANY ($1) ORDER BY target"
    assert [row["target"] for row in query(server, erased, user_ids)] == sorted(user_ids)


def test_erasure_of_a_worker_that_died_is_repeated(browser: Browser, server: Server, login: str) -> None:
    delete_account(browser)
    query(server, "UPDATE users SET deletion_by = 'erasing', deletion_due = now() + interval '1 hour' WHERE login = $1",
          login)  # fmt: skip
    assert erase(server) == 0
    assert server.sso("user", "restore", login, check=False).returncode == 1
    assert browser.sign_in(login).status_code == 401
    make_due(server, login)
    assert is_erased(server, login)


def test_sign_in_keep_and_erasure_exclude_each_other(browser: Browser, server: Server, login: str) -> None:
    """Several browsers keep the account at once: one succeeds. Then nothing erases it."""
    delete_account(browser)
    browsers = [Browser(server) for _ in range(6)]
    for other in browsers:
        assert other.sign_in(login).status_code == 403
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda other: other.submit("/login/keep").headers["Location"], browsers))
    assert sorted(answers) == ["/account?done=kept#profile", *["/login"] * 5]
    assert erase(server) == 0
    assert sum(other.is_signed_in for other in browsers) == 1
    for other in browsers:
        other.http.close()


def test_account_that_is_due_cannot_be_kept(browser: Browser, server: Server, login: str) -> None:
    delete_account(browser)
    make_due(server, login)
    assert keep(browser, login) == 303
    assert not browser.is_signed_in
    assert is_erased(server, login)
    assert browser.sign_in(login).status_code == 401


def test_erased_login_can_be_registered_again_with_another_id(server: Server, login: str) -> None:
    old = user_id_of(server, login)
    server.sso("user", "delete", login, "--now", "--yes")
    assert server.sso("user", "add", login, "--user-id", old, check=False).returncode == 1
    assert server.sso("user", "add", login).returncode == 0
    assert user_id_of(server, login) != old
