"""Browser sessions: cookies, stored digests, expiry and revocation."""

import hashlib
import re
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta

import httpx
import pytest
import trio

from sso.accounts.authentication_context import by_password
from sso.accounts.errors import InvalidCredentials
from sso.accounts.history.change_limit import MAX_CHANGES
from sso.accounts.model import LoginOptions
from sso.core.net import parse_address
from sso.services import Services
from tests.kit.browser import (
    SESSION,
    VISIT,
    AuthenticatorApp,
    Browser,
    each_worker,
    fresh_browser,
    new_user,
    query,
    user_id_of,
)
from tests.kit.builders import PASSWORD, TOTP_SECRET, add_user
from tests.kit.operator_changes import set_password as set_password_as_operator
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

pytestmark = pytest.mark.two_workers

SECRET = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits
HERE = parse_address("127.0.0.1")


@pytest.fixture
def browser(server: Server) -> Iterator[Browser]:
    with Browser(server) as browser:
        yield browser


@pytest.fixture(scope="module")
def login(server: Server) -> str:
    return new_user(server)


def test_cookie_changes_at_every_login(browser: Browser, login: str) -> None:
    browser.get("/login")
    seen = {browser.cookie(VISIT)}
    for _ in range(3):
        browser.sign_in(login)
        assert browser.cookie(VISIT) is None
        assert SECRET.fullmatch(browser.cookie() or "")
        seen.add(browser.cookie())
        browser.open_account()
        browser.submit("/logout")
    assert len(seen) == 4


def test_cookie_changes_after_the_second_factor(browser: Browser, server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    browser.get("/login")
    before = browser.cookie(VISIT)
    browser.follow(browser.sign_in(login))
    challenge = browser.cookie(VISIT)
    assert challenge != before
    assert browser.cookie() is None
    browser.submit("/login/code", otp=AuthenticatorApp(TOTP_SECRET).code())
    assert browser.cookie() not in (None, before, challenge)


def test_cookie_planted_before_the_login_is_not_reused(browser: Browser, server: Server, login: str) -> None:
    planted = "A" * 43
    browser.set_cookie(planted)
    browser.set_cookie(planted, VISIT)
    browser.sign_in(login)
    assert browser.cookie() != planted
    assert browser.is_signed_in
    for name in (SESSION, VISIT):
        with Browser(server) as attacker:
            attacker.set_cookie(planted, name)
            assert not attacker.is_signed_in
            assert attacker.get("/login/code").headers["Location"] == "/login"


def test_previous_session_ends_at_the_next_login(browser: Browser, server: Server, login: str) -> None:
    browser.sign_in(login)
    before = browser.cookie()
    assert before
    browser.http.cookies.delete(SESSION)
    browser.get("/login")
    browser.set_cookie(before)
    assert browser.submit("/login", login=new_user(server), password=PASSWORD).status_code == 303
    assert browser.cookie() != before
    with Browser(server) as other:
        other.set_cookie(before)
        assert not other.is_signed_in


def test_malformed_cookie_is_ignored(server: Server) -> None:
    with server.client() as client:
        for value in ("", "x", "A" * 42, "A" * 44, "A" * 42 + "\N{LATIN SMALL LETTER E WITH ACUTE}", "'--"):
            headers = [(b"Cookie", f"{SESSION}={value}; {VISIT}={value}".encode())]
            assert client.get("/account", headers=headers).status_code == 303, value
            assert client.get("/login/code", headers=headers).status_code == 303, value


def test_database_contains_digests_only(browser: Browser, server: Server, login: str) -> None:
    browser.sign_in(login)
    secret = browser.cookie() or ""
    (row,) = query(server, "SELECT * FROM browser_sessions WHERE digest = $1", hashlib.sha256(secret.encode()).digest())
    assert secret not in str(dict(row))
    second = new_user(server, totp_secret=TOTP_SECRET)
    with Browser(server) as other:
        other.sign_in(second)
        secret = other.cookie(VISIT) or ""
    assert query(server, "SELECT 1 FROM login_challenges WHERE digest = $1", hashlib.sha256(secret.encode()).digest())
    tables = query(server, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
    found = (f"SELECT '{table}' FROM \"{table}\" t WHERE t::text LIKE $1" for (table,) in tables)
    assert query(server, " UNION ALL ".join(found), f"%{secret}%") == []


def test_cookies_are_host_only_http_only_and_same_site(browser: Browser, login: str) -> None:
    visit = attributes(browser.get("/login"))
    assert visit[VISIT] == {"httponly": "", "path": "/", "samesite": "Lax"}
    answer = browser.submit("/login", login=login, password=PASSWORD)
    session = attributes(answer)[SESSION]
    assert session.pop("max-age") == "1209600"
    session.pop("expires", None)
    assert session == {"httponly": "", "path": "/", "samesite": "Lax"}
    assert attributes(answer)[VISIT]["max-age"] == "0"


def attributes(answer: httpx.Response) -> dict[str, dict[str, str]]:
    """Returns the attributes of each cookie. A cookie without a domain is sent to this host only."""
    cookies = {}
    for line in answer.headers.get_list("Set-Cookie"):
        first, *rest = line.split("; ")
        pairs = [part.partition("=") for part in rest]
        cookies[first.partition("=")[0]] = {name.lower(): value for name, _, value in pairs}
    return cookies


@pytest.fixture(scope="module")
def https(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with an https base URL, behind a proxy that terminates TLS."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = {"SSO_BIND": bind, "SSO_BASE_URL": "https://sso.example.com", "SSO_RATE_LOGIN": "0"}
    settings |= QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1"}
    with running(tmp_path_factory.mktemp("https"), **settings) as server:
        server.settings["SSO_BIND"] = bind  # the port is not part of the base URL
        server.apply({"users": [{"login": "ann@example.com", "password": PASSWORD}]})
        with httpx.Client(base_url=f"http://{bind}", headers={"Host": "sso.example.com"}, timeout=60) as client:
            yield client


def test_https_cookies_are_secure_and_have_the_host_prefix(https: httpx.Client) -> None:
    page = https.get("/login")
    assert attributes(page) == {
        "__Host-sso_visit": {"httponly": "", "path": "/", "samesite": "Lax", "secure": ""},
    }
    visit = page.headers["Set-Cookie"].partition(";")[0]
    match = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert match
    fields = {"csrf": match[1], "login": "ann@example.com", "password": PASSWORD}
    origin = {"Origin": "https://sso.example.com", "Sec-Fetch-Site": "same-origin"}
    entered = https.post("/login", data=fields, headers={"Cookie": visit, **origin})
    assert entered.status_code == 303
    session = attributes(entered)["__Host-sso_session"]
    assert "secure" in session
    assert "httponly" in session
    assert "domain" not in session
    secret = entered.headers.get_list("Set-Cookie")[0].partition(";")[0].partition("=")[2]
    assert https.get("/account", headers={"Cookie": f"__Host-sso_session={secret}"}).status_code == 200
    # The name without the prefix, which other hosts of the domain could set, is ignored.
    assert https.get("/account", headers={"Cookie": f"sso_session={secret}"}).status_code == 303


def test_https_rejects_a_form_with_an_http_origin(https: httpx.Client) -> None:
    page = https.get("/login")
    visit = page.headers["Set-Cookie"].partition(";")[0]
    match = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert match
    fields = {"csrf": match[1], "login": "ann@example.com", "password": PASSWORD}
    for origin in ("http://sso.example.com", "https://sso.example.com.evil.example", "https://sso.example.com:444"):
        assert https.post("/login", data=fields, headers={"Cookie": visit, "Origin": origin}).status_code == 403


def test_https_responses_have_hsts_for_a_year(https: httpx.Client) -> None:
    for path in ("/login", "/nothing", "/static/sso.css", "/proxy/oauth/keys", "/healthz"):
        assert https.get(path).headers["Strict-Transport-Security"] == "max-age=31536000", path


def disable(server: Server, login: str) -> None:
    for disabled in (True, False):  # a revoked session stays revoked
        server.apply({"users": [{"login": login, "disabled": disabled}]})


def set_password(server: Server, login: str) -> None:
    server.apply({"users": [{"login": login, "password": "another one"}]})


def end_sessions(server: Server, login: str) -> None:
    server.sso("user", "end-sessions", login)


def change_on_the_account_page(server: Server, login: str) -> None:
    with fresh_browser(server, login) as browser:
        browser.open_account()
        new = "another one, longer"
        fields = {"current_password": PASSWORD, "new_password": new, "repeat_password": new}
        assert browser.submit("/account/password", **fields).status_code == 303


def sign_out_everywhere_else(server: Server, login: str) -> None:
    with fresh_browser(server, login) as browser:
        browser.open_account()
        assert browser.submit("/account/sessions/end-others").status_code == 303


@pytest.mark.parametrize(
    "end", [disable, set_password, end_sessions, change_on_the_account_page, sign_out_everywhere_else]
)
def test_revoked_session_ends_on_all_workers(server: Server, end: Callable[[Server, str], None]) -> None:
    login = new_user(server)
    with each_worker(server) as workers, fresh_browser(server, login) as browser:
        cookies = {"Cookie": f"{SESSION}={browser.cookie()}"}
        for _ in range(2):  # a worker must not cache the session
            assert {worker.get("/account", headers=cookies).status_code for worker in workers} == {200}
        end(server, login)
        assert {worker.get("/account", headers=cookies).status_code for worker in workers} == {303}


def test_revocation_ends_a_login_challenge(server: Server, browser: Browser) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    browser.follow(browser.sign_in(login))
    form = browser.form("/login/code")
    user_id = user_id_of(server, login)
    server.run_with_services(lambda services: services.users.revoke_all(user_id))
    answer = browser.post("/login/code", form | {"otp": AuthenticatorApp(TOTP_SECRET).code()})
    assert answer.status_code == 401
    assert not browser.is_signed_in


async def test_login_that_started_before_a_revocation_gets_no_session(services: Services) -> None:
    before = await add_user(services)
    await set_password_as_operator(services, before, await services.hasher.hash("another one"))
    with pytest.raises(InvalidCredentials):
        await services.sessions.start(before, by_password(), HERE, "")
    with pytest.raises(InvalidCredentials):
        await services.session_tokens.issue(before, by_password(), LoginOptions(HERE))
    with pytest.raises(InvalidCredentials):
        await services.sessions.start_challenge(before)
    after = await services.users.get(before.user_id)
    assert after
    await services.sessions.start(after, by_password(), HERE, "")


def test_session_expires(server: Server, browser: Browser, login: str) -> None:
    browser.sign_in(login)
    own = hashlib.sha256((browser.cookie() or "").encode()).digest()
    ((left,),) = query(server, "SELECT expires - now() FROM browser_sessions WHERE digest = $1", own)
    assert timedelta(days=13.9) < left <= timedelta(days=14)
    query(server, "UPDATE browser_sessions SET expires = now() WHERE digest = $1", own)
    assert not browser.is_signed_in


def test_oldest_browser_session_ends_beyond_fifty(server: Server) -> None:
    login = new_user(server)
    with Browser(server) as first, Browser(server) as second:
        first.sign_in(login)
        second.sign_in(login)
        copy = """INSERT INTO browser_sessions (digest, id, user_id, created, last_seen, expires)
            SELECT sha256(convert_to(n::text || s.id, 'UTF8')), n::text || s.id, s.user_id, now(), now(), s.expires
            FROM (SELECT s.* FROM browser_sessions s JOIN users USING (user_id) WHERE login = $1 LIMIT 1) s,
            generate_series(1, 47) AS n"""
        query(server, copy, login)
        with Browser(server) as third:
            third.sign_in(login)
            assert first.is_signed_in
            with Browser(server) as fourth:
                fourth.sign_in(login)
                signed_in = [browser.is_signed_in for browser in (first, second, third, fourth)]
    assert signed_in == [False, True, True, True]


async def test_sign_in_ends_the_sessions_that_concurrent_ones_left_beyond_the_limit(services: Services) -> None:
    user = await add_user(services)
    async with trio.open_nursery() as nursery:
        for _ in range(70):
            nursery.start_soon(services.sessions.start, user, by_password(), HERE, "")
    await services.sessions.start(user, by_password(), HERE, "")
    assert len(await services.sessions.list(user.user_id)) == 50


def test_sign_out_everywhere_else_is_recorded_often_and_works_more_often(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser, Browser(server) as other:
        browser.open_account()
        form = {"csrf": browser.form("/logout")["csrf"]}
        for _ in range(MAX_CHANGES + 1):
            assert browser.post("/account/sessions/end-others", form).status_code == 303
        other.sign_in(login)
        assert other.is_signed_in
        assert browser.post("/account/sessions/end-others", form).status_code == 303
        assert not other.is_signed_in
    events = "SELECT FROM account_events WHERE kind = 'signed_out_elsewhere' AND user_id = $1"
    assert len(query(server, events, user_id_of(server, login))) == MAX_CHANGES
