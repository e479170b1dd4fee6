"""Login and logout with a browser, over HTTP."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from tests.kit.browser import SESSION, VISIT, Browser, each_worker, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.mailbox import mails
from tests.kit.server import Server

pytestmark = pytest.mark.two_workers

MARKUP = "<img src=x onerror=alert(1)>\"'onfocus=alert(1) </title></script><script>alert(1)</script>"
ELSEWHERE = [
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "https://evil.example",
    "https:evil.example",
    "http:/evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.example",
    "@evil.example",
    "?next=/",
    "#x",
    " /account",
    "%2F%2Fevil.example",
    "/%2Fevil.example",
    "/%2fevil.example",
    "/%5Cevil.example",
    "/%5cevil.example",
    "/account\r\nSet-Cookie: a=b",
    "/account#<script>",
    "/аccount",  # the second character is Cyrillic
    "/" + "a" * 5000,
]


@pytest.fixture
def browser(server: Server) -> Iterator[Browser]:
    with Browser(server) as browser:
        yield browser


@pytest.fixture(scope="module")
def login(server: Server) -> str:
    return new_user(server)


def test_start_page_redirects_to_login_or_account(browser: Browser, login: str) -> None:
    assert browser.get("/").headers["Location"] == "/login"
    browser.sign_in(login)
    assert browser.get("/").headers["Location"] == "/account"


def test_correct_password_redirects_to_the_account(browser: Browser, login: str) -> None:
    answer = browser.sign_in(login)
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/account"
    assert login in browser.follow(answer).text


def test_login_is_accepted_as_people_and_keyboards_type_it(browser: Browser, login: str) -> None:
    assert browser.sign_in(f" {login.upper()} ").status_code == 303


def test_wrong_password_shows_the_form_again(browser: Browser, server: Server) -> None:
    login = new_user(server)
    for password in ("not-the-one", "", PASSWORD + " ", PASSWORD.upper(), "x" * 20_000):
        answer = browser.sign_in(login, password)
        assert answer.status_code == 401
        assert browser.problem == "The e-mail address or password is incorrect."
        assert browser.form("/login")["login"] == login  # the form keeps the login
        assert not password or password not in answer.text
        assert browser.cookie() is None
    query(server, "DELETE FROM throttle")  # ends the block of the account
    assert browser.submit("/login", password=PASSWORD).status_code == 303


def test_next_is_kept_after_a_wrong_password(browser: Browser, server: Server) -> None:
    browser.get("/login?next=/account/totp")
    browser.submit("/login", login=new_user(server), password="wrong")
    assert browser.submit("/login", password=PASSWORD).headers["Location"] == "/account/totp"


@pytest.mark.parametrize("path", ["/", "/account", "/account/totp?a=b&c=%20d", "/proxy/oauth/authorize?x=1"])
def test_login_redirects_to_a_local_next(browser: Browser, login: str, path: str) -> None:
    browser.get("/login", params={"next": path})
    assert browser.submit("/login", login=login, password=PASSWORD).headers["Location"] == path


def test_login_ignores_a_foreign_next(browser: Browser, login: str) -> None:
    """The value may come from the address of the page or from the form, or the user may already be signed in."""
    for path in ELSEWHERE:
        browser.http.cookies.clear()
        browser.get("/login", params={"next": path})
        assert "evil.example" not in browser.page.text
        assert browser.form("/login").get("next", "/account") == "/account", path
        answer = browser.submit("/login", login=login, password=PASSWORD, next=path)
        assert answer.headers["Location"] == "/account", path
        assert browser.get("/login", params={"next": path}).headers["Location"] == "/account", path


def test_second_factor_ignores_a_foreign_next(browser: Browser, server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    assert browser.sign_in(login, next="//evil.example").headers["Location"] == "/login/code?next=/account"
    assert "evil.example" not in browser.get("/login/code?next=//evil.example").text


def test_login_page_redirects_a_signed_in_user(browser: Browser, login: str) -> None:
    browser.sign_in(login)
    answer = browser.get("/login?next=/account/totp")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/account/totp"


@pytest.mark.parametrize("path", ["/account", "/account/totp"])
def test_account_pages_redirect_to_login_without_a_session(browser: Browser, path: str) -> None:
    assert browser.get(path).headers["Location"] == "/login?next=/account"


def test_logout_ends_the_session_on_all_workers(server: Server, browser: Browser, login: str) -> None:
    with each_worker(server) as workers:
        browser.sign_in(login)
        secret = browser.cookie()
        cookies = {"Cookie": f"{SESSION}={secret}"}
        assert [worker.get("/account", headers=cookies).status_code for worker in workers] == [200, 200]
        browser.open_account()
        answer = browser.submit("/logout")
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/login"
        assert browser.cookie() is None
        assert [worker.get("/account", headers=cookies).status_code for worker in workers] == [303, 303]


def test_logout_requires_post(browser: Browser, login: str) -> None:
    browser.sign_in(login)
    assert browser.get("/logout").status_code == 405
    assert browser.is_signed_in


@pytest.mark.parametrize("way", ["wrong password", "unknown", "disabled", "disabled, right password", "2FA"])
def test_failed_login_does_not_reveal_whether_the_user_exists(server: Server, browser: Browser, way: str) -> None:
    fields: dict[str, Any] = {"disabled": True} if "disabled" in way else {}
    fields |= {"totp_secret": TOTP_SECRET} if way == "2FA" else {}
    login = "nobody-knows@example.com" if way == "unknown" else new_user(server, **fields)
    password = PASSWORD if "right" in way or way == "unknown" else "wrong"
    by_page, by_api = failed_login(browser, login, password)
    # The reference is a wrong password of an ordinary user.
    with Browser(server) as other:
        assert (by_page, by_api) == failed_login(other, new_user(server), "wrong")


def failed_login(browser: Browser, login: str, password: str) -> tuple[object, object]:
    """Returns everything in the responses of page and API that could reveal whether the user exists."""
    page = browser.sign_in(login, password)
    api = browser.http.post("/proxy/api/login", json={"login": login, "password": password})
    text = re.sub(r'name="csrf" value="[^"]*"|"challenge":"[^"]*"', "", page.text).replace(login, "LOGIN")
    return (page.status_code, shown(page), text), (api.status_code, shown(api), api.content)


def shown(answer: httpx.Response) -> dict[str, str]:
    changing = ("date", "x-request-id", "content-length" if "html" in answer.headers["Content-Type"] else "")
    return {name: value for name, value in answer.headers.items() if name not in changing}


def test_entered_login_is_escaped(browser: Browser) -> None:
    browser.get("/login", params={"next": f"/{MARKUP}", "error": MARKUP, MARKUP: MARKUP})
    assert_harmless(browser.page)
    assert_harmless(browser.sign_in(MARKUP, "wrong", next=f"/{MARKUP}", unknown=MARKUP))
    assert browser.form("/login")["login"] == MARKUP
    browser.get("/login/code", params={"next": f"/{MARKUP}"})
    assert_harmless(browser.get(f"/{MARKUP}"))
    assert_harmless(browser.get("/static/", params={"a": MARKUP}))


def user_with_legacy_login(server: Server, login: str, **fields: Any) -> str:
    """Creates a user whose login is no longer accepted for new users, and returns the login."""
    query(server, "UPDATE users SET login = $1, login_key = $1 WHERE login = $2", login, new_user(server, **fields))
    return login


def test_nick_and_login_are_escaped(browser: Browser, server: Server) -> None:
    login = user_with_legacy_login(server, '<img/src=x>"@evil.example', nick=MARKUP)
    browser.sign_in(login)
    assert_harmless(browser.open_account())
    assert "&lt;img/src=x&gt;&#34;@evil.example" in browser.page.text
    assert_harmless(browser.get("/account", params={"done": MARKUP, "problem": MARKUP}))
    assert_harmless(browser.get("/account/totp"))
    assert "<img" not in browser.submit("/account/totp", setup=MARKUP, otp=MARKUP).text


def test_banned_user_with_a_second_factor_learns_why_and_gets_no_code(browser: Browser, server: Server) -> None:
    login = new_user(server, email_2fa=True)
    server.sso("user", "ban", login, "--reason", "Cheating")
    refused = browser.sign_in(login)
    assert (refused.status_code, "Cheating" in refused.text) == (403, True), refused.text
    assert not mails(server, login)


def test_login_is_masked_and_escaped_on_the_second_factor_page(browser: Browser, server: Server) -> None:
    login = user_with_legacy_login(server, "<b>someone@<i>.example", email_2fa=True)
    assert_harmless(browser.follow(browser.sign_in(login)))
    assert "someone" not in browser.page.text
    assert "&lt;…@&lt;i&gt;.example" in browser.page.text


OWN_SCRIPT = re.compile(r' src="/static/[a-z-]+\.js" defer| type="application/json" id="[a-z-]+"')


def assert_harmless(page: httpx.Response) -> None:
    """The page contains no element or script from user input."""
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    tags = Tags(page.text).seen
    assert not {"img", "b", "i"} & {tag for tag, _ in tags}
    assert not [script for script in re.findall(r"<script([^>]*)>", page.text) if not OWN_SCRIPT.fullmatch(script)]
    assert not [name for _, names in tags for name in names if name.startswith("on")]


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, [name for name, _ in attrs]))


def test_visit_cookie_is_set_once(browser: Browser) -> None:
    browser.get("/login")
    first = browser.cookie(VISIT)
    assert "Set-Cookie" not in browser.get("/login").headers
    assert browser.cookie(VISIT) == first
