"""Rate limits for accounts and addresses, on every way to a session or a token.

More than 300 lines, because the tests share the generators that fail on each of these ways.
"""

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import trio

from tests.kit.browser import AuthenticatorApp, Browser, forget_authentication, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.passkey_sign_in import new_passkey, passkey_sign_in, register
from tests.kit.plain_http import PlainTransport
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running
from tests.upstream.stores import SteamStore, add_store, link_account, opened

LOGIN = "/proxy/api/login"
FREE = 5  # failures of an account before it is blocked
PER_ADDRESS = 6
CONCURRENT = 30
# The counter that was charged last: a charge sets ``expires`` to 15 minutes later.
_LAST = "(SELECT key FROM throttle WHERE expires <= now() + interval '15 min' ORDER BY expires DESC LIMIT 1)"
WAIT = f"SELECT extract(epoch FROM blocked_until - expires + interval '15 min') FROM throttle WHERE key = {_LAST}"
BLOCK = f"UPDATE throttle SET blocked_until = now() + interval '1 minute' WHERE key = {_LAST}"
UNBLOCK = f"UPDATE throttle SET blocked_until = now() WHERE key = {_LAST}"
_numbers, _addresses = itertools.count(1), itertools.count(2)


@pytest.fixture(scope="module")
def limited(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that allows few failures per minute and address. Only 127.0.0.1 is a trusted proxy."""
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2"}
    settings |= {"SSO_RATE_LOGIN": str(PER_ADDRESS), "SSO_TRUSTED_PROXIES": "127.0.0.1/32"}
    with running(tmp_path_factory.mktemp("limited"), **settings) as server:
        yield server


def from_address(server: Server, address: str) -> httpx.Client:
    return server.client(transport=PlainTransport(address))


@pytest.fixture
def direct(limited: Server) -> Iterator[httpx.Client]:
    """A client with an address that no other test has used."""
    with from_address(limited, f"127.0.1.{next(_addresses)}") as client:
        yield client


@pytest.fixture
def proxy(limited: Server) -> Iterator[httpx.Client]:
    with limited.client() as client:
        yield client


def unknown_login() -> str:
    return f"nobody{next(_numbers)}@example.com"


def fail(client: httpx.Client, login: str | None = None, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(LOGIN, json={"login": login or unknown_login(), "password": "wrong"}, headers=sent)


def last_block_seconds(server: Server) -> float:
    """Returns the seconds for which the last failure blocked its counter."""
    [[wait]] = query(server, WAIT)
    return float(wait)


# Each way to log in: a generator that prepares the browser and then fails at every step.
Failing = Callable[[Browser, str], Iterator[httpx.Response]]


def by_login_operation(browser: Browser, login: str) -> Iterator[httpx.Response]:
    while True:
        yield fail(browser.http, login)


def by_page(browser: Browser, login: str) -> Iterator[httpx.Response]:
    while True:
        yield browser.sign_in(login, "wrong")


def by_code(browser: Browser, login: str) -> Iterator[httpx.Response]:
    browser.follow(browser.sign_in(login))
    while True:
        yield browser.submit("/login/code", otp=AuthenticatorApp(TOTP_SECRET).wrong())


def by_code_of_the_login_operation(browser: Browser, login: str) -> Iterator[httpx.Response]:
    fields = {"login": login, "password": PASSWORD}
    while True:
        yield browser.http.post(LOGIN, json={**fields, "otp": AuthenticatorApp(TOTP_SECRET).wrong()})


def by_form(action: str, *fields: str) -> Failing:
    def failing(browser: Browser, login: str) -> Iterator[httpx.Response]:
        browser.sign_in(login)
        browser.get("/account")
        while True:
            more = dict.fromkeys(fields, "another one, longer")
            yield browser.submit(action, current_password="wrong", **more)

    return failing


def by_enrolment(browser: Browser, login: str) -> Iterator[httpx.Response]:
    """Sends a wrong password before the setup of an app."""
    browser.sign_in(login)
    forget_authentication(browser.server)
    browser.get("/account/totp")
    while True:
        yield browser.submit("/account/totp/confirm", current_password="wrong")


WAYS: dict[str, tuple[Failing, dict[str, Any]]] = {
    "login operation": (by_login_operation, {}),
    "page": (by_page, {}),
    "code": (by_code, {"totp_secret": TOTP_SECRET}),
    "code of the login operation": (by_code_of_the_login_operation, {"totp_secret": TOTP_SECRET}),
}


# A signed-in browser is a known device and has its own counter.
FORMS = {
    "change of password": by_form("/account/password", "new_password", "repeat_password"),
    "setting up an app": by_enrolment,
    "turning on mailed codes": by_form("/account/email-2fa"),
}


@pytest.mark.parametrize("form", FORMS)
def test_account_page_form_is_blocked_after_five_failures(server: Server, form: str) -> None:
    login = new_user(server)
    with Browser(server) as browser, server.client() as client:
        failing = FORMS[form](browser, login)
        assert [answer.status_code for answer in itertools.islice(failing, FREE)] == [422] * FREE
        assert last_block_seconds(server) == 1
        query(server, BLOCK)
        assert next(failing).status_code == 429
        assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 200


def test_attempts_with_a_stored_hash_that_cannot_be_read_fail_and_are_counted(server: Server) -> None:
    login = new_user(server)
    broken = ("$2b$04$" + "z" * 53, "$scrypt$ln=16,r=1,p=1$c2FsdA$MDEyMzQ1Njc4OWFiY2RlZg", "x", "$", "")
    with server.client() as client:
        for stored in broken:
            query(server, "UPDATE users SET password_hash = $1 WHERE login = $2", stored, login)
            assert fail(client, login).status_code == 401, stored
    assert len(broken) == FREE
    assert last_block_seconds(server) == 1


@pytest.mark.parametrize("way", WAYS)
def test_account_is_blocked_after_five_failures(server: Server, way: str) -> None:
    failing, fields = WAYS[way]
    login = new_user(server, **fields)
    with Browser(server) as browser:
        attempts = failing(browser, login)
        assert {answer.status_code for answer in itertools.islice(attempts, FREE)} <= {401, 422}
        assert last_block_seconds(server) == 1
        query(server, BLOCK)
        assert next(attempts).status_code == 429
    # The correct password is rejected as well: accepting it during a block would reveal it.
    with server.client() as client:
        right = client.post(LOGIN, json={"login": login, "password": PASSWORD})
        assert right.status_code == 429
        assert right.json() == {"status": "ERROR", "error": "too many attempts, try again later"}
    with Browser(server) as browser:
        page = browser.sign_in(login)
        assert page.status_code == 429
        assert 55 <= int(page.headers["Retry-After"]) <= 60
        assert browser.problem.startswith("Too many attempts.")


def test_block_grows_with_each_failure_and_is_the_same_for_unknown_accounts(server: Server) -> None:
    with server.client() as client:
        for login in (new_user(server), unknown_login()):
            assert [fail(client, login).status_code for _ in range(FREE)] == [401] * FREE
            for wait in (1, 2, 4):
                assert last_block_seconds(server) == wait
                query(server, BLOCK)
                answer = fail(client, login)
                assert answer.status_code == 429
                assert 1 <= int(answer.headers["Retry-After"]) <= 60
                query(server, UNBLOCK)
                assert fail(client, login).status_code == 401


def test_attempts_during_a_block_do_not_extend_it(server: Server) -> None:
    login = unknown_login()
    with server.client() as client:
        for _ in range(FREE):
            fail(client, login)
        query(server, BLOCK)
        before = query(server, f"SELECT blocked_until FROM throttle WHERE key = {_LAST}")
        assert {fail(client, login).status_code for _ in range(5)} == {429}
        assert query(server, f"SELECT blocked_until FROM throttle WHERE key = {_LAST}") == before


def test_login_in_another_case_is_the_same_account(server: Server) -> None:
    login = unknown_login()
    with server.client() as client:
        for spelling in (login, login.upper(), login.title(), login, login):
            assert fail(client, spelling).status_code == 401
        query(server, BLOCK)
        assert fail(client, login.capitalize()).status_code == 429


@pytest.mark.parametrize("way", ["login operation", "page"])
def test_successful_login_clears_the_failures(server: Server, way: str) -> None:
    login = new_user(server)
    with Browser(server) as browser:
        for _ in range(2):
            for _ in range(FREE - 1):
                assert fail(browser.http, login).status_code == 401
            if way == "page":
                assert browser.sign_in(login).status_code == 303
                browser.http.cookies.clear()
            else:
                assert browser.http.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 200


def test_correct_password_without_code_does_not_clear_the_failures(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        for _ in range(FREE):
            browser.follow(browser.sign_in(login))
            assert browser.submit("/login/code", otp=app.wrong()).status_code == 401
        query(server, BLOCK)
        assert browser.submit("/login/code", otp=app.code()).status_code == 429


def test_address_limit_spans_all_accounts(direct: httpx.Client) -> None:
    assert [fail(direct).status_code for _ in range(PER_ADDRESS)] == [401] * PER_ADDRESS
    answer = fail(direct)
    assert answer.status_code == 429
    assert 50 <= int(answer.headers["Retry-After"]) <= 61


def test_address_limit_applies_to_pages(limited: Server, direct: httpx.Client) -> None:
    login = new_user(limited)
    for _ in range(PER_ADDRESS):
        fail(direct)
    with Browser(limited) as browser:
        browser.http.close()
        browser.http = direct
        assert browser.sign_in(login).status_code == 429


def test_address_limit_applies_to_passkeys(limited: Server, direct: httpx.Client) -> None:
    with Browser(limited) as browser:
        browser.http.close()
        browser.http = direct
        browser.get("/login")
        form = browser.form("/login/passkey")
        sent = [browser.post("/login/passkey", form | {"credential": "{}"}) for _ in range(PER_ADDRESS + 1)]
        assert [answer.status_code for answer in sent] == [401] * PER_ADDRESS + [429]
        assert int(sent[-1].headers["Retry-After"]) >= 1
        assert "Too many attempts." in sent[-1].text
        assert fail(direct).status_code == 429  # one limit for all ways to sign in


def test_successful_passkey_logins_do_not_count_for_the_address(limited: Server) -> None:
    passkey = new_passkey(limited)
    with fresh_browser(limited, new_user(limited)) as browser:
        assert register(browser, passkey).status_code == 303
    with Browser(limited) as browser:
        browser.http.close()
        browser.http = from_address(limited, f"127.0.1.{next(_addresses)}")
        for _ in range(PER_ADDRESS + 1):
            browser.http.cookies.clear()
            assert passkey_sign_in(browser, passkey).status_code == 303


def test_successful_logins_do_not_count_for_the_address(limited: Server, direct: httpx.Client) -> None:
    login = new_user(limited)
    for _ in range(PER_ADDRESS * 2):
        assert direct.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 200
    assert [fail(direct).status_code for _ in range(PER_ADDRESS)] == [401] * PER_ADDRESS


def test_other_addresses_are_not_affected(limited: Server, direct: httpx.Client) -> None:
    for _ in range(PER_ADDRESS + 1):
        fail(direct)
    with from_address(limited, f"127.0.1.{next(_addresses)}") as other:
        assert fail(other).status_code == 401


async def concurrent_statuses(server: Server, address: str, bodies: list[dict[str, str]]) -> Counter[int]:
    """Returns the number of responses by status. Each request has its own connection, so both workers get some."""
    seen: Counter[int] = Counter()
    transport = httpx.AsyncHTTPTransport(local_address=address, limits=httpx.Limits(max_connections=len(bodies)))
    async with httpx.AsyncClient(base_url=server.base_url, transport=transport, timeout=60) as client:

        async def send(body: dict[str, str]) -> None:
            seen[(await client.post(LOGIN, json=body)).status_code] += 1

        async with trio.open_nursery() as nursery:
            for body in bodies:
                nursery.start_soon(send, body)
    return seen


async def test_concurrent_attempts_do_not_exceed_the_address_limit(limited: Server) -> None:
    bodies = [{"login": unknown_login(), "password": "wrong"} for _ in range(CONCURRENT)]
    seen = await concurrent_statuses(limited, f"127.0.1.{next(_addresses)}", bodies)
    assert PER_ADDRESS <= seen[401] <= PER_ADDRESS + 2  # each worker may check one more
    assert seen[401] + seen[429] == CONCURRENT


async def test_concurrent_attempts_do_not_exceed_the_account_limit(server: Server) -> None:
    bodies = [{"login": "concurrent@example.com", "password": "wrong"}] * CONCURRENT
    began = time.monotonic()
    seen = await concurrent_statuses(server, "127.0.0.1", bodies)
    expired_blocks = int(math.log2(time.monotonic() - began + 1))  # attempts after blocks of 1, 2, 4, … seconds
    assert FREE <= seen[401] <= FREE + 2 + expired_blocks
    assert seen[401] + seen[429] == CONCURRENT


async def test_concurrent_correct_logins_all_succeed(server: Server) -> None:
    login = await trio.to_thread.run_sync(new_user, server)
    bodies = [{"login": login, "password": PASSWORD}] * CONCURRENT
    assert await concurrent_statuses(server, "127.0.0.1", bodies) == {200: CONCURRENT}


async def test_concurrent_codes_do_not_exceed_the_account_limit(server: Server) -> None:
    login = await trio.to_thread.run_sync(lambda: new_user(server, totp_secret=TOTP_SECRET))
    wrong = {"login": login, "password": PASSWORD, "otp": AuthenticatorApp(TOTP_SECRET).wrong()}
    seen = await concurrent_statuses(server, "127.0.0.1", [wrong] * CONCURRENT)
    assert FREE <= seen[401] <= FREE + 2
    assert seen[401] + seen[429] == CONCURRENT


async def test_concurrent_correct_logins_succeed_after_a_few_failures(server: Server) -> None:
    login = await trio.to_thread.run_sync(new_user, server)
    assert await concurrent_statuses(server, "127.0.0.1", [{"login": login, "password": "wrong"}] * (FREE - 1)) == {
        401: FREE - 1
    }
    assert await concurrent_statuses(server, "127.0.0.1", [{"login": login, "password": PASSWORD}] * 20) == {200: 20}


def test_account_limit_applies_without_an_address_limit(server: Server) -> None:
    assert server.settings["SSO_RATE_LOGIN"] == "0"
    with server.client() as client:
        assert {fail(client).status_code for _ in range(15)} == {401}
        login = unknown_login()
        assert [fail(client, login).status_code for _ in range(FREE + 1)] == [401] * FREE + [429]


def test_tickets_count_as_failures_of_the_address_only_if_they_are_wrong_or_used(
    limited: Server, direct: httpx.Client
) -> None:
    with opened(store := SteamStore()):
        provider_id = add_store(limited, store, create_users=False)

        def send(ticket: str) -> int:
            return direct.post("/proxy/api/ticket", json={"provider": provider_id, "ticket": ticket}).status_code

        assert {send(store.ticket()) for _ in range(2 * PER_ADDRESS)} == {403}  # no account is linked
        login, ticket = new_user(limited, totp_secret=TOTP_SECRET), store.ticket()
        link_account(limited, provider_id, "76561197960287930", login)
        assert {send(ticket) for _ in range(2 * PER_ADDRESS)} == {401}  # a code is missing
        query(limited, "UPDATE users SET totp_sealed = NULL WHERE login = $1", login)
        assert send(ticket) == 200
        wrong_or_used = [ticket, store.ticket(app_id="570")] * (PER_ADDRESS // 2)
        assert [send(one) for one in [*wrong_or_used, store.ticket()]] == [401] * PER_ADDRESS + [429]


def test_trusted_proxy_reports_the_client_address(proxy: httpx.Client) -> None:
    for _ in range(PER_ADDRESS):
        assert fail(proxy, X_Forwarded_For="203.0.113.7").status_code == 401
    assert fail(proxy, X_Forwarded_For="203.0.113.7").status_code == 429
    assert fail(proxy, X_Forwarded_For="203.0.113.8").status_code == 401
    # Addresses that the client itself put into the header are ignored.
    assert fail(proxy, X_Forwarded_For="198.51.100.1, 203.0.113.7").status_code == 429
    assert fail(proxy, X_Forwarded_For="::ffff:203.0.113.7").status_code == 429


def test_forwarding_header_of_an_untrusted_client_is_ignored(direct: httpx.Client) -> None:
    names = [
        "X-Forwarded-For",
        "Forwarded",
        "X-Real-IP",
        "True-Client-IP",
        "Client-IP",
        "CF-Connecting-IP",
        "X-Client-IP",
    ]
    for number in range(PER_ADDRESS):
        headers = {name: f"for=203.0.113.{number}" if name == "Forwarded" else f"203.0.113.{number}" for name in names}
        assert fail(direct, **headers).status_code == 401
    assert fail(direct, X_Forwarded_For="203.0.113.99").status_code == 429


def test_request_without_a_known_address_is_rejected(proxy: httpx.Client) -> None:
    for header in ("nonsense", "203.0.113.7,", "unknown", "1.2.3", "203.0.113.7;"):
        assert fail(proxy, X_Forwarded_For=header).status_code == 403, header


def test_ipv6_addresses_are_counted_by_their_64_bit_network(proxy: httpx.Client) -> None:
    for number in range(PER_ADDRESS):
        assert fail(proxy, X_Forwarded_For=f"2001:db8:1:2:{number}::{number}").status_code == 401
    assert fail(proxy, X_Forwarded_For="2001:db8:1:2:ffff::1").status_code == 429
    assert fail(proxy, X_Forwarded_For="2001:db8:1:3::1").status_code == 401
