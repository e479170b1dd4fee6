"""The security history of an account, over HTTP."""

import re
from collections.abc import Iterator

import pytest
import trio

from sso.accounts.history.events import EventKind, record_failure
from sso.accounts.history.store import MAX_DAILY_FAILURES
from sso.config import load
from sso.db.cleanup import delete_expired
from sso.services import open_services
from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server, until

FIREFOX = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"}
EVENTS = "SELECT e.* FROM account_events e JOIN users u USING (user_id) WHERE login = $1 ORDER BY id"


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture
def browser(server: Server, login: str) -> Iterator[Browser]:
    with fresh_browser(server, login, headers=FIREFOX) as browser:
        browser.open_account()
        yield browser


def kinds(server: Server, login: str) -> list[str]:
    return [row["kind"] for row in query(server, EVENTS, login)]


def test_sign_in_by_page_is_recorded_with_address_and_browser(browser: Browser, server: Server, login: str) -> None:
    (event,) = query(server, EVENTS, login)
    assert (event["kind"], event["address"], event["device"]) == ("signed_in", "127.0.0.1", "Firefox on Linux")
    assert event["detail"] == '{"auth": "login"}'
    assert "Signed in" in browser.get("/account/history").text


def test_sign_in_of_a_game_is_recorded_with_its_name(browser: Browser, server: Server, login: str) -> None:
    server.apply({"applications": [{"application_id": 800_101, "name": "Blue Dusk"}]})
    fields = {"login": login, "password": PASSWORD, "app_id": 800_101}
    token = browser.http.post("/proxy/api/login", json=fields).json()["token"]
    assert browser.http.post("/proxy/api/login", json={"token": token}).status_code == 200  # a renewal is no sign-in
    assert kinds(server, login) == ["signed_in", "signed_in"]
    assert "Blue Dusk" in browser.get("/account/history").text


def test_changes_of_the_account_are_recorded(browser: Browser, server: Server, login: str) -> None:
    new = {"current_password": PASSWORD, "new_password": "a longer and better one"}
    browser.follow(browser.submit("/account/password", **new, repeat_password=new["new_password"]))
    browser.follow(browser.submit("/account/profile", nick="Bob"))
    with Browser(server) as other:
        assert other.sign_in(login, new["new_password"]).status_code == 303
    browser.open_account()
    browser.follow(browser.submit("/account/sessions/end"))
    browser.submit("/logout")
    assert kinds(server, login) == [
        "signed_in", "password_changed", "profile_changed", "signed_in", "session_ended", "session_ended"
    ]  # fmt: skip
    assert query(server, EVENTS, login)[1]["device"] == "Firefox on Linux"


def test_change_by_a_command_is_recorded_as_by_support(browser: Browser, server: Server, login: str) -> None:
    server.sso("user", "end-sessions", login)
    event = query(server, EVENTS, login)[-1]
    assert (event["kind"], event["address"], event["detail"]) == ("signed_out_elsewhere", "", '{"by": "support"}')


def test_failed_sign_ins_from_one_address_share_an_entry(server: Server, login: str) -> None:
    with Browser(server) as stranger:
        for _ in range(3):
            assert stranger.sign_in(login, "wrong").status_code == 401
        assert stranger.sign_in("nobody@example.com", "wrong").status_code == 401
    (event,) = until(lambda: [row for row in query(server, EVENTS, login) if row["times"] == 3])
    assert (event["kind"], event["address"]) == ("sign_in_failed", "127.0.0.1")
    with fresh_browser(server, login) as browser:
        assert "3 attempts" in browser.get("/account/history").text


def test_failed_sign_ins_from_many_addresses_cannot_flood_the_history(server: Server, login: str) -> None:
    user_id = query(server, "SELECT user_id FROM users WHERE login = $1", login)[0]["user_id"]

    async def fail_often() -> None:
        async with open_services(load(None, server.settings), server.settings["SSO_DATABASE_URL"]) as services:
            for number in range(MAX_DAILY_FAILURES + 30):
                address = f"192.0.2.{number}"
                await record_failure(services.database, user_id, EventKind.SIGN_IN_FAILED, address)

    trio.run(fail_often)
    events = query(server, EVENTS, login)
    assert len(events) == MAX_DAILY_FAILURES
    assert (events[-1]["times"], events[-1]["address"]) == (31, "")


def test_wrong_code_is_recorded(server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        assert browser.submit("/login/code", otp=AuthenticatorApp(TOTP_SECRET).wrong()).status_code == 401
    assert kinds(server, login) == ["code_failed"]


def test_history_is_paged(browser: Browser, server: Server, login: str) -> None:
    query(
        server,
        """INSERT INTO account_events (user_id, kind, detail) SELECT user_id, 'site_granted',
        jsonb_build_object('name', 'Site ' || n) FROM users, generate_series(1, 60) n WHERE login = $1 ORDER BY n""",
        login,
    )
    first = browser.get("/account/history").text
    assert "Site 60<" in first
    assert "Site 10<" not in first
    link = re.search(r'href="(/account/history\?before=\d+)"', first)
    assert link
    older = browser.get(link[1])
    assert "Site 10<" in older.text
    assert "Site 60<" not in older.text
    assert "Older events" not in older.text
    for bad in ("x", "-1", "9" * 30, "1.5", "%00"):
        assert browser.get(f"/account/history?before={bad}").status_code == 200


def test_history_asks_for_a_sign_in(server: Server) -> None:
    with Browser(server) as browser:
        assert browser.get("/account/history").headers["Location"] == "/login?next=/account/history"


def test_names_of_sites_are_shown_as_text(browser: Browser, server: Server, login: str) -> None:
    query(
        server,
        """INSERT INTO account_events (user_id, kind, device, detail)
        SELECT user_id, 'site_granted', '<i>', '{"name": "<b>x</b>"}' FROM users WHERE login = $1""",
        login,
    )
    text = browser.get("/account/history").text
    assert "&lt;b&gt;x" in text
    assert "<i>" not in text


def test_old_events_are_neither_shown_nor_kept(browser: Browser, server: Server, login: str) -> None:
    query(
        server,
        """INSERT INTO account_events (user_id, kind, at, detail) SELECT user_id, 'site_granted',
        now() - interval '91 days', '{"name": "Long ago"}' FROM users WHERE login = $1""",
        login,
    )
    assert "Long ago" not in browser.get("/account/history").text

    async def clean() -> None:
        async with open_services(load(None, server.settings), server.settings["SSO_DATABASE_URL"]) as services:
            await delete_expired(services.database, 0, 90)

    query(server, "UPDATE account_events SET id = DEFAULT WHERE kind <> 'site_granted'")  # the old one is the oldest
    trio.run(clean)
    assert "site_granted" not in kinds(server, login)
