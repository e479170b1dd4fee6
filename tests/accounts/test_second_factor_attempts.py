"""Second-factor codes are counted before they are checked, so that a burst gets few checks."""

import hmac
import math
import random
import socket
import time
from collections import Counter
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest
import trio

from sso.accounts.errors import InvalidCredentials, TooManyAttempts
from sso.accounts.model import User
from sso.accounts.second_factor.codes import SecondFactors
from sso.config import Settings
from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import digest
from sso.core.net import parse_address
from sso.db.statement import Statement
from sso.services import Services, build
from tests.kit.browser import AuthenticatorApp, Browser, mailed_codes, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET, add_user
from tests.kit.long_tests import IS_LONG_RUN, takes_long
from tests.kit.open_database import open_database
from tests.kit.server import Server

LOGIN = "/proxy/api/login"
FREE = 5  # attempts before an account is blocked, and attempts at one mailed code
BURST = 50
ROUNDS = 6 if IS_LONG_RUN else 4
HERE = parse_address("192.0.2.1")


def send_concurrently(server: Server, guesses: list[httpx.Request]) -> Counter[int]:
    """Counts responses by status. The last byte of each request is sent after all other bytes of all requests."""
    url = urlsplit(server.base_url)
    messages = [_wire_form(guess) for guess in guesses]
    with ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection((url.hostname, url.port), timeout=60)) for _ in messages
        ]
        for connection, message in zip(connections, messages, strict=True):
            connection.sendall(message[:-1])
        for connection, message in zip(connections, messages, strict=True):
            connection.sendall(message[-1:])
        return Counter(int(connection.recv(12).split()[1]) for connection in connections)


def _wire_form(request: httpx.Request) -> bytes:
    lines = [f"{request.method} {request.url.raw_path.decode()} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + request.read()


def wrong_codes(right: str, count: int) -> list[str]:
    return random.sample([code for code in map("{:06}".format, range(2000)) if code != right], count)


def page_guess(browser: Browser, form: dict[str, str], code: str) -> httpx.Request:
    fields = form | {"otp": code}
    headers = {"Origin": browser.server.base_url, "Sec-Fetch-Site": "same-origin"}
    return browser.http.build_request("POST", "/login/code", data=fields, headers=headers)


def api_guess(browser: Browser, login: str, code: str) -> httpx.Request:
    return browser.http.build_request("POST", LOGIN, json={"login": login, "password": PASSWORD, "otp": code})


def burst(server: Server, kind: str, way: str) -> Counter[int]:
    """Sends the correct code in the middle of many wrong ones."""
    totp = kind == "totp"
    login = new_user(server, **({"totp_secret": TOTP_SECRET} if totp else {"email_2fa": True}))
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        right = AuthenticatorApp(TOTP_SECRET).code() if totp else mailed_codes(server, login)[0]
        codes = wrong_codes(right, BURST - 1)
        codes.insert(BURST // 2, right)
        form = browser.form("/login/code")
        guesses = [
            page_guess(browser, form, code) if way == "page" else api_guess(browser, login, code) for code in codes
        ]
        return send_concurrently(server, guesses)


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("email", "page"),
        ("totp", "login operation"),
        pytest.param("email", "login operation", marks=takes_long),
        pytest.param("totp", "page", marks=takes_long),
    ],
)
def test_concurrent_codes_are_checked_at_most_five_times(server: Server, kind: str, way: str) -> None:
    won = 0
    for _ in range(ROUNDS):
        began = time.monotonic()
        seen = burst(server, kind, way)
        expired_blocks = int(
            math.log2(1 + time.monotonic() - began)
        )  # blocks of 1, 2, 4, … seconds, one attempt after each
        success = seen[303] + seen[200]
        assert seen[401] + seen[429] + success == BURST
        assert success or seen[401] <= FREE + expired_blocks
        won += success
    assert won < ROUNDS  # one of the first five codes may be the correct one by chance


def test_email_code_cannot_be_derived_from_its_stored_digest(server: Server) -> None:
    login = new_user(server, email_2fa=True)
    with server.client() as client:
        client.post(LOGIN, json={"login": login, "password": PASSWORD})
    (code,) = mailed_codes(server, login)
    user_id, stored = query(
        server, "SELECT user_id, digest FROM email_codes JOIN users USING (user_id) WHERE login = $1", login
    )[0]
    for text in (code, f"{user_id}:{code}", f"{login}:{code}"):
        assert not hmac.compare_digest(digest(text), stored)


def test_sixth_attempt_at_an_email_code_is_rejected_even_if_correct(server: Server) -> None:
    login = new_user(server, email_2fa=True)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        (code,) = mailed_codes(server, login)
        for wrong in wrong_codes(code, FREE):
            assert browser.submit("/login/code", otp=wrong).status_code == 401
        query(server, "DELETE FROM throttle")  # ends the block of the account
        assert browser.submit("/login/code", otp=code).status_code == 401


async def _right_code(services: Services, user: User) -> str:
    if user.totp_sealed:
        return AuthenticatorApp(TOTP_SECRET).code()
    await services.second_factors.send_code(user)
    (mail,) = await services.database.rows(Statement("SELECT id, body_sealed FROM outbox"))
    body = services.keyring.decrypt(column_purpose("outbox.body_sealed", mail["id"]), mail["body_sealed"])
    return body.partition("code is ")[2][:6]


@pytest.mark.parametrize("kind", ["email", "totp"])
async def test_attempt_beyond_the_limit_is_not_checked(
    services: Services, settings: Settings, keyring: Keyring, dsn: str, kind: str
) -> None:
    """All attempts of both workers start before one is checked. The correct code starts last and is checked first."""
    async with open_database(dsn, 4) as other_database:
        workers = [services, build(settings, other_database, keyring)]
        user = await add_user(services, **({"totp_secret": TOTP_SECRET} if kind == "totp" else {"email_2fa": True}))
        right = await _right_code(services, user)
        begun = ended = 0
        limit_used, all_begun, right_ended = trio.Event(), trio.Event(), trio.Event()
        outcomes: Counter[type] = Counter()

        def note_progress() -> None:
            if begun + ended >= FREE:
                limit_used.set()
            if begun + ended == BURST:
                all_begun.set()

        def delay_check(factors: SecondFactors) -> None:
            original = factors.check

            async def check(user: User, code: str) -> str:
                nonlocal begun
                begun += 1
                note_progress()
                await (all_begun if code == right else right_ended).wait()
                return await original(user, code)

            factors.check = check  # type: ignore[method-assign]

        async def guess(worker: Services, code: str) -> None:
            nonlocal ended
            try:
                outcomes[type(await worker.password_login.check_code(user, code, HERE))] += 1
            except (InvalidCredentials, TooManyAttempts) as error:
                outcomes[type(error)] += 1
            ended += 1
            note_progress()
            if code == right:
                right_ended.set()

        for worker in workers:
            delay_check(worker.second_factors)
        async with trio.open_nursery() as nursery:
            for code in wrong_codes(right, BURST - 1):
                nursery.start_soon(guess, random.choice(workers), code)
            await limit_used.wait()
            nursery.start_soon(guess, services, right)
    assert outcomes == {InvalidCredentials: FREE, TooManyAttempts: BURST - FREE}
