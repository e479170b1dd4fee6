"""Forgotten passwords: the mail, its link, and what a reset ends."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from sso.accounts.password_reset.requests import MAX_LINKS
from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.mailbox import link_in, mails, path_of, wait_for_mails
from tests.kit.oauth import Browser as SiteBrowser
from tests.kit.oauth import Site, close_all, new_site
from tests.kit.password_reset import SUBJECT, ask_for_link, mailed_link, open_link
from tests.kit.server import Server, until

NEW = "a longer and better one"
LOGIN = "/proxy/api/login"


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture
def browser(server: Server) -> Iterator[Browser]:
    with Browser(server) as browser:
        yield browser


def reset(browser: Browser, new: str = NEW, **fields: str) -> int:
    return browser.submit("/reset", **{"new_password": new, "repeat_password": new, **fields}).status_code


def can_sign_in(server: Server, login: str, password: str) -> bool:
    """Returns whether the password is right, also if a second factor is missing."""
    with server.client() as http:
        answer = http.post(LOGIN, json={"login": login, "password": password})
    return answer.status_code == 200 or "otp required" in answer.text


def stored_hash(server: Server, login: str) -> str:
    return str(query(server, "SELECT password_hash FROM users WHERE login = $1", login)[0]["password_hash"])


def test_reset_replaces_the_password_and_signs_in(server: Server, browser: Browser, login: str) -> None:
    ask_for_link(browser, f" {login.upper()} ")
    assert "If there is an account for" in browser.page.text
    open_link(browser, mailed_link(server, login))
    assert "token" not in str(browser.page.url)
    assert reset(browser) == 303
    assert browser.is_signed_in
    assert not can_sign_in(server, login, PASSWORD)
    assert can_sign_in(server, login, NEW)
    assert wait_for_mails(server, login, "was changed")
    assert query(server, "SELECT email_verified AS it FROM users WHERE login = $1", login)[0]["it"]


def test_reset_removes_device_keys_from_before_the_address_was_verified(
    server: Server, browser: Browser, login: str
) -> None:
    """Who added one may have used the address of another person later. One that was added afterwards stays."""
    user_id = query(server, "SELECT user_id FROM users WHERE login = $1", login)[0]["user_id"]
    query(server, "UPDATE users SET email_verified = true WHERE user_id = $1", user_id)
    key = (
        "INSERT INTO device_keys (digest, id, user_id, created) VALUES ($1::text::bytea, $1, $2, now() - $3::interval)"
    )
    query(server, key, f"stranger {user_id}", user_id, timedelta(days=1))
    query(server, key, f"owner {user_id}", user_id, timedelta())
    ask_for_link(browser, login)
    open_link(browser, mailed_link(server, login))
    assert reset(browser) == 303
    left = query(server, "SELECT id FROM device_keys WHERE user_id = $1", user_id)
    assert [row["id"] for row in left] == [f"owner {user_id}"]
    assert "device_key_removed" in {row["kind"] for row in query(server, "SELECT kind FROM account_events")}


def test_link_ends_when_an_operator_changes_the_address(server: Server, browser: Browser, login: str) -> None:
    """Whoever reads the mails to the address before must not get the account, nor verify the new address."""
    ask_for_link(browser, login)
    link = mailed_link(server, login)
    user_id = query(server, "SELECT user_id FROM users WHERE login = $1", login)[0]["user_id"]
    server.apply({"users": [{"user_id": user_id, "login": f"moved-{login}"}]})
    page = browser.follow(browser.get(path_of(link)))
    assert "new_password" not in page.text
    assert can_sign_in(server, f"moved-{login}", PASSWORD)


def test_every_sign_in_form_links_to_the_page(server: Server, browser: Browser) -> None:
    assert 'href="/forgot"' in browser.get("/login").text
    page = browser.get("/login?next=/account%3Fa=b").text
    assert 'href="/forgot?next=/account%3Fa%3Db"' in page
    browser.get("/forgot?next=/account%3Fa%3Db")
    assert browser.form("/forgot")["next"] == "/account?a=b"


def test_mail_and_page_are_the_same_for_an_unknown_address(server: Server, browser: Browser, login: str) -> None:
    pages = []
    for address in (login, "nobody@example.com"):
        ask_for_link(browser, address)
        pages.append(re.sub(r"person\d+@example.com|nobody@example.com", "…", browser.page.text))
    assert pages[0] == pages[1]
    mailed_link(server, login)
    until(lambda: not query(server, "SELECT 1 FROM outbox WHERE recipient = ''"))
    assert not mails(server, "nobody@example.com")


def test_link_has_the_host_of_the_base_url(server: Server, browser: Browser, login: str) -> None:
    """A link with the host of the request would send the secret to whoever chose that host."""
    browser.get("/forgot")
    fields = browser.form("/forgot") | {"login": login}
    hosts = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example", "X-Forwarded-Proto": "https"}
    assert browser.http.post("/forgot", data=fields, headers=hosts).status_code == 200
    assert browser.http.post("/forgot", data=fields, headers={"Host": "evil.example"}).status_code == 400
    assert browser.http.post("/forgot", data=fields, headers={"Host": "localhost"}).status_code == 200
    for mail in wait_for_mails(server, login, SUBJECT, 2):
        assert link_in(mail).startswith(f"{server.base_url}/reset?token=")
        assert "evil" not in mail


def test_reset_ends_everything_that_was_issued(server: Server, browser: Browser, login: str) -> None:
    site, site_browser = new_site(server), SiteBrowser(server, login).sign_in()
    tokens = site.tokens(site_browser)
    with fresh_browser(server, login) as other:
        issued = other.http.post(LOGIN, json={"login": login, "password": PASSWORD, "factor": "a game"}).json()
        headers = {"Authorization": f"Bearer {issued['jwt']}", "Factor": "a game"}
        info = "/api/permissions/user/info"
        assert other.http.post(info, json={}, headers=headers).json()["status"] == "OK"
        ask_for_link(browser, login)
        open_link(browser, mailed_link(server, login))
        assert reset(browser) == 303
        assert not other.is_signed_in
        for name in ("token", "stoken"):
            assert other.http.post(LOGIN, json={"token": issued[name]}).status_code == 401
        assert other.http.post(info, json={}, headers=headers).status_code == 401
    assert site.userinfo(tokens["access_token"]).status_code == 401
    assert site.refresh(tokens["refresh_token"]).status_code == 400
    close_all()


def test_all_links_are_void_after_one_was_used_and_not_by_opening_it(
    server: Server, browser: Browser, login: str
) -> None:
    for count in (1, 2):
        ask_for_link(browser, login)
        mailed_link(server, login, count)
    first, second = map(link_in, mails(server, login, SUBJECT))
    for _ in range(3):
        open_link(browser, first)
    assert reset(browser) == 303
    for link in (first, second):
        with Browser(server) as other:
            other.follow(other.get(path_of(link)))
            assert other.page.status_code == 410
            assert "no longer works" in other.problem


def test_rejected_password_leaves_the_link_valid(server: Server, browser: Browser, login: str) -> None:
    ask_for_link(browser, login)
    open_link(browser, mailed_link(server, login))
    for new, repeated, problem in (
        (NEW, "another one", "do not match"),
        ("short", "short", "at least 8 characters"),
        ("password1", "password1", "very common"),
    ):
        assert reset(browser, new, repeat_password=repeated) == 422
        assert problem in browser.problem
    assert can_sign_in(server, login, PASSWORD)
    assert reset(browser) == 303


def test_reset_requires_the_second_factor(server: Server, browser: Browser) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    ask_for_link(browser, login)
    open_link(browser, mailed_link(server, login))
    before = stored_hash(server, login)
    for otp in ("", app.wrong(), "x"):
        assert reset(browser, otp=otp) == 401
        assert not browser.is_signed_in
        assert stored_hash(server, login) == before
    fields = browser.form("/reset") | {"new_password": NEW, "repeat_password": NEW}
    del fields["otp"]
    assert browser.post("/reset", fields).status_code == 401
    assert stored_hash(server, login) == before
    assert reset(browser, otp=app.code()) == 303
    assert browser.is_signed_in
    assert can_sign_in(server, login, NEW)


def test_wrong_codes_at_a_reset_are_limited(server: Server, browser: Browser) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    ask_for_link(browser, login)
    open_link(browser, mailed_link(server, login))
    statuses = [reset(browser, otp=app.wrong()) for _ in range(6)]
    assert statuses[:5] == [401] * 5
    assert statuses[5] == 429


def test_mailed_code_is_not_asked_for_in_addition_to_the_mailed_link(server: Server, browser: Browser) -> None:
    login = new_user(server, email_2fa=True)
    ask_for_link(browser, login)
    open_link(browser, mailed_link(server, login))
    assert "otp" not in browser.form("/reset")
    assert reset(browser) == 303
    assert browser.is_signed_in


def test_mailed_code_does_not_replace_the_authenticator_app(server: Server, browser: Browser) -> None:
    """An attacker who reads the mails of the user has the link and the code."""
    login = new_user(server, totp_secret=TOTP_SECRET, email_2fa=True)
    browser.http.post(LOGIN, json={"login": login, "password": PASSWORD})
    code = re.search(r"code is (\d{6})", wait_for_mails(server, login, "Your sign-in code")[0])
    assert code
    ask_for_link(browser, login)
    open_link(browser, mailed_link(server, login))
    assert reset(browser, otp=code[1]) == 401


def test_disabled_user_gets_no_working_link(server: Server, browser: Browser) -> None:
    login = new_user(server)
    ask_for_link(browser, login)
    link = mailed_link(server, login)
    server.apply({"users": [{"login": login, "disabled": True}]})
    open_link(browser, link)
    assert browser.page.status_code == 410
    ask_for_link(browser, login)
    until(lambda: not query(server, "SELECT 1 FROM outbox WHERE recipient = ''"))
    assert len(mails(server, login, SUBJECT)) == 1


def test_password_change_voids_links(server: Server, browser: Browser, login: str) -> None:
    ask_for_link(browser, login)
    link = mailed_link(server, login)
    with fresh_browser(server, login) as owner:
        owner.open_account()
        fields = {"current_password": PASSWORD, "new_password": NEW, "repeat_password": NEW}
        assert owner.submit("/account/password", **fields).status_code == 303
    open_link(browser, link)
    assert browser.page.status_code == 410


def test_mails_to_one_account_are_limited_and_the_owner_has_a_link(
    server: Server, browser: Browser, login: str
) -> None:
    browser.get("/forgot")
    form = browser.form("/forgot") | {"login": login}
    for _ in range(MAX_LINKS + 2):
        assert browser.post("/forgot", form).status_code == 200
    links = [link_in(mail) for mail in wait_for_mails(server, login, SUBJECT, MAX_LINKS)]
    other = new_user(server)
    ask_for_link(browser, other)
    mailed_link(server, other)
    assert len(mails(server, login, SUBJECT)) == MAX_LINKS
    open_link(browser, links[-1])
    assert reset(browser) == 303
    ask_for_link(browser, login)  # the links are used, so the owner gets a new one at once
    mailed_link(server, login, MAX_LINKS + 1)


def come_from_a_site(server: Server, browser: Browser, login: str) -> Site:
    """Opens the link that was asked for on the sign-in page of a site."""
    site = new_site(server)
    page = browser.get("/proxy/oauth/authorize", params=site.query())
    forgot = re.search(r'href="(/forgot\?next=[^"]+)"', page.text)
    assert forgot
    browser.get(forgot[1])
    assert browser.submit("/forgot", login=login).status_code == 200
    open_link(browser, mailed_link(server, login))
    return site


def form_may_lead_to_the_site(browser: Browser) -> bool:
    return "form-action 'self' https://game.example.com;" in browser.page.headers["Content-Security-Policy"]


def test_flow_that_the_player_came_from_continues(server: Server, browser: Browser, login: str) -> None:
    site = come_from_a_site(server, browser, login)
    assert form_may_lead_to_the_site(browser)
    assert reset(browser, repeat_password="another one") == 422
    assert form_may_lead_to_the_site(browser)
    fields = {"new_password": NEW, "repeat_password": NEW}
    answer = browser.follow(browser.submit("/reset", **fields))
    assert answer.headers["Location"].startswith(f"{site.redirect_uri}?code=")
    close_all()


def test_flow_that_the_player_came_from_continues_after_the_account_was_kept(
    server: Server, browser: Browser, login: str
) -> None:
    with fresh_browser(server, login) as owner:
        owner.open_account()
        owner.submit("/account/delete")
    site = come_from_a_site(server, browser, login)
    assert reset(browser) == 403
    assert form_may_lead_to_the_site(browser)
    answer = browser.follow(browser.submit("/login/keep"))
    assert answer.headers["Location"].startswith(f"{site.redirect_uri}?code=")
    close_all()


def test_password_is_reset_after_the_flow_has_ended(server: Server, browser: Browser, login: str) -> None:
    come_from_a_site(server, browser, login)
    query(server, "DELETE FROM oauth_requests")
    assert browser.get("/reset").status_code == 200
    assert not form_may_lead_to_the_site(browser)
    assert reset(browser) == 303
    assert can_sign_in(server, login, NEW)
    close_all()


def test_malformed_link_is_no_longer_valid(browser: Browser) -> None:
    for token in ("x", "x" * 43, "ä", "%00", "a" * 5000, "../../account", 'a"b'):
        page = browser.get("/reset", params={"token": token}, follow_redirects=True)
        assert page.status_code == 410, token


def test_text_that_is_no_address_is_refused(browser: Browser) -> None:
    browser.get("/forgot")
    for login in ("", "a", "@", "x" * 5000, "a@b@c", "a@b\r\nBcc: c@d"):
        answer = browser.submit("/forgot", login=login)
        assert answer.status_code == 422, login
        assert 'role="alert"' in answer.text


def test_user_of_a_closed_account_chooses_a_password_and_keeps_it(server: Server, browser: Browser, login: str) -> None:
    with fresh_browser(server, login) as owner:
        owner.open_account()
        owner.submit("/account/delete")
    ask_for_link(browser, login)
    mail = wait_for_mails(server, login, SUBJECT)[0]
    assert "Your account is closed and will be deleted on" in mail
    open_link(browser, link_in(mail))
    assert reset(browser) == 403
    assert "Your account is closed" in browser.page.text
    assert not browser.is_signed_in
    assert browser.submit("/login/keep").status_code == 303
    assert browser.is_signed_in
    assert can_sign_in(server, login, NEW)


def test_account_that_an_operator_has_closed_gets_no_link(server: Server, browser: Browser, login: str) -> None:
    server.sso("user", "delete", login, "--yes")
    ask_for_link(browser, login)
    other = new_user(server)
    ask_for_link(browser, other)
    mailed_link(server, other)
    assert not mails(server, login, SUBJECT)


def test_form_of_another_site_sends_no_mail_and_sets_no_password(server: Server, browser: Browser, login: str) -> None:
    browser.get("/forgot")
    fields = browser.form("/forgot") | {"login": login}
    assert browser.post("/forgot", fields, Origin="https://evil.example").status_code == 403
    assert browser.post("/forgot", fields | {"csrf": "x"}).status_code == 403
    ask_for_link(browser, login)
    open_link(browser, mailed_link(server, login))
    fields = browser.form("/reset") | {"new_password": NEW, "repeat_password": NEW}
    assert browser.post("/reset", fields | {"csrf": "x"}).status_code == 403
    assert can_sign_in(server, login, PASSWORD)
