"""Password checks wait in a bounded, fair queue; disconnected clients cost no hash; logins are limited."""

import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import orjson
import pytest
import trio

from sso.accounts.errors import InvalidCredentials, LoginBusy, TooManyAttempts
from sso.accounts.login.rate_limit import LoginAttempt, LoginRateLimiter
from sso.accounts.model import User
from sso.config import Settings
from sso.core.net import SITE_FACTOR, Address, parse_address
from sso.db.errors import Unavailable
from sso.services import Services
from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user, query, user_id_of
from tests.kit.builders import PASSWORD, TOTP_SECRET, add_user
from tests.kit.conditions import until_true
from tests.kit.passkey_sign_in import new_passkey, passkey_sign_in, register
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

LOGIN = "/proxy/api/login"
DEVICE = "sso_device"
HERE, THERE = parse_address("192.0.2.1"), parse_address("192.0.2.2")
QUEUE, FLOOD = 60, 40
DISCONNECTED = 80  # fewer than fit into the queue of connections


class HeldHashes:
    """Records which accounts get a slot and which passwords are hashed. No hash starts before ``begin`` is set."""

    def __init__(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        self.accounts: list[str] = []
        self.passwords: list[str] = []
        self.begin = trio.Event()
        matches, admit = services.hasher.matches, LoginRateLimiter.admit

        async def record_slot(rate_limiter: LoginRateLimiter, attempt: LoginAttempt) -> User | None:
            self.accounts.append(attempt.account)
            return await admit(rate_limiter, attempt)

        async def record_hash(hashed: str | None, password: str) -> bool:
            await self.begin.wait()
            self.passwords.append(password)
            return await matches(hashed, password)

        monkeypatch.setattr(LoginRateLimiter, "admit", record_slot)
        monkeypatch.setattr(services.hasher, "matches", record_hash)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, login_queue=QUEUE)


@pytest.fixture
def hashes(services: Services, monkeypatch: pytest.MonkeyPatch) -> HeldHashes:
    return HeldHashes(services, monkeypatch)


async def attempt(services: Services, user: User, password: str, address: Address = HERE) -> None:
    try:
        await services.password_login.check_password(user.login, password, address)
    except* (TooManyAttempts, LoginBusy):
        pass
    except* Exception as group:
        assert "invalid credentials" in str(group.exceptions[0])  # noqa: PT017 - the flood has wrong passwords


async def until_waiting(services: Services, count: int) -> None:
    await until_true(lambda: len(services.hasher.queue) >= count)


@pytest.mark.parametrize("spread", ["one address", "many addresses", "many accounts"])
async def test_flood_of_logins_delays_another_user_by_a_few_hashes(
    services: Services, hashes: HeldHashes, spread: str
) -> None:
    ann, bob = await add_user(services), await add_user(services)
    slots = services.hasher.queue.slots
    async with trio.open_nursery() as nursery:
        for number in range(FLOOD + slots):
            address = parse_address(f"198.51.100.{number}") if spread == "many addresses" else HERE
            user = await add_user(services) if spread == "many accounts" and number < 10 else ann
            nursery.start_soon(attempt, services, user, "flood", address)
        await until_waiting(services, FLOOD)
        nursery.start_soon(attempt, services, bob, PASSWORD, THERE)
        await until_waiting(services, FLOOD + 1)
        hashes.begin.set()
    assert hashes.accounts.index(bob.login_key) <= slots + 2


async def test_full_queue_answers_busy_and_admits_other_users(services: Services, hashes: HeldHashes) -> None:
    ann, bob = await add_user(services), await add_user(services)
    busy = 0

    async def flood() -> None:
        nonlocal busy
        try:
            await services.password_login.check_password(ann.login, PASSWORD, HERE)
        except LoginBusy as error:
            busy += error.status == 503 and int(error.headers["Retry-After"]) >= 1
        except TooManyAttempts:
            pass
        except Unavailable:  # the statement took too long on a busy machine
            await flood()

    async with trio.open_nursery() as nursery:
        for _ in range(services.hasher.queue.slots + services.hasher.queue.max_waiting + 5):
            nursery.start_soon(flood)
        await until_true(lambda: busy == 5)
        nursery.start_soon(attempt, services, bob, "bob's password", THERE)
        await until_true(lambda: busy == 6)  # the last login of the flood makes room
        hashes.begin.set()
    assert "bob's password" in hashes.passwords


async def test_one_ipv6_site_with_many_accounts_cannot_fill_the_queue(services: Services, hashes: HeldHashes) -> None:
    """A /48 has 65,536 networks, and an attacker can invent any number of account names."""
    ann, bob = await add_user(services), await add_user(services)
    queue, refused = services.hasher.queue, 0

    async def flood(number: int) -> None:
        nonlocal refused
        try:
            address = parse_address(f"2001:db8:1:{number:x}::1")
            await services.password_login.check_password(f"nobody{number}@example.com", "flood", address)
        except LoginBusy:
            refused += 1
        except InvalidCredentials:
            pass

    async with trio.open_nursery() as nursery:
        for number in range(queue.slots + queue.max_waiting):
            nursery.start_soon(flood, number)
        await until_waiting(services, queue.max_waiting)
        nursery.start_soon(attempt, services, ann, "ann's password", THERE)
        nursery.start_soon(attempt, services, bob, "bob's password", parse_address("2001:db8:2::1"))
        await until_true(lambda: refused == 2)  # the last logins of the flood make room
        hashes.begin.set()
    positions = [hashes.accounts.index(user.login_key) for user in (ann, bob)]
    assert max(positions) <= queue.slots + 2 * SITE_FACTOR + 2


async def test_cancelled_login_is_not_hashed(services: Services, hashes: HeldHashes) -> None:
    ann, bob = await add_user(services), await add_user(services)
    slots = services.hasher.queue.slots
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as flood:
                for _ in range(FLOOD):
                    flood.start_soon(attempt, services, ann, PASSWORD)
                await until_waiting(services, FLOOD - slots)
                nursery.start_soon(attempt, services, bob, "bob's password", THERE)
                await until_waiting(services, FLOOD - slots + 1)
                scope.cancel()
        hashes.begin.set()
    assert hashes.passwords == ["bob's password"]


async def test_correct_login_holds_no_slot_while_it_is_counted(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await add_user(services), await add_user(services)
    counted, release = 0, trio.Event()

    async def record_success(*_: object, **__: object) -> None:
        nonlocal counted
        counted += 1
        await release.wait()

    monkeypatch.setattr(services.password_login.rate_limiter, "record_success", record_success)
    async with trio.open_nursery() as nursery:
        for _ in range(services.hasher.queue.slots):
            nursery.start_soon(attempt, services, ann, PASSWORD)
        await until_true(lambda: counted == services.hasher.queue.slots)
        with pytest.raises(InvalidCredentials):
            await services.password_login.check_password(bob.login, "wrong", THERE)
        release.set()


async def test_failure_counts_although_the_client_has_disconnected(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, clients that disconnect during the hash could guess without a limit."""
    ann = await add_user(services)
    is_hashing, is_cancelled = threading.Event(), threading.Event()

    def verify(hashed: str, password: str) -> bool:
        is_hashing.set()
        return not is_cancelled.wait(60)

    monkeypatch.setattr(services.hasher, "_verify", verify)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(attempt, services, ann, "wrong")
        await until_true(is_hashing.is_set)
        nursery.cancel_scope.cancel()
        is_cancelled.set()
    rows = await services.database.run_sql("SELECT failures FROM throttle WHERE failures > 0", [])
    assert rows
    assert {row["failures"] for row in rows} == {1}


@pytest.fixture(scope="module")
def slow(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose password checks take a considerable part of a second, and that counts failures per address."""
    settings = {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1", "SSO_RATE_LOGIN": "100000"}
    settings |= {"SSO_ARGON2_TIME": "10"}
    with running(tmp_path_factory.mktemp("slow"), **settings) as server:
        yield server


@contextmanager
def stopped(processes: Iterable[int]) -> Iterator[None]:
    """Stops the processes while the block runs."""
    pids = list(processes)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_logins_of_disconnected_clients_are_not_hashed(slow: Server) -> None:
    """Each hash of a wrong password counts as a failure of the address."""
    login = new_user(slow)
    url = urlsplit(slow.base_url)
    with stopped(slow.workers()):  # so that every client has disconnected before its request is read
        for number in range(DISCONNECTED):
            body = orjson.dumps({"login": f"nobody{number}@example.com", "password": "wrong"})
            head = f"POST {LOGIN} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
            with socket.create_connection((url.hostname, url.port), timeout=60) as connection:
                connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    with slow.client() as client:
        assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 200
        hashed = sum(row["failures"] for row in query(slow, "SELECT failures FROM throttle WHERE failures > 0"))
        assert hashed < DISCONNECTED / 4


@pytest.fixture(scope="module")
def limited(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that allows three logins per minute and account."""
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1", "SSO_RATE_ACCOUNT": "3"}
    with running(tmp_path_factory.mktemp("limited"), **settings) as server:
        yield server


def test_successful_logins_of_an_account_are_limited(limited: Server) -> None:
    with limited.client() as client:
        login, other = new_user(limited), new_user(limited)
        statuses = [client.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code for _ in range(5)]
        assert statuses == [200] * 3 + [429] * 2
        answer = client.post(LOGIN, json={"login": login, "password": PASSWORD})
        assert 1 <= int(answer.headers["Retry-After"]) <= 61
        assert client.post(LOGIN, json={"login": other, "password": PASSWORD}).status_code == 200
        query(limited, "UPDATE throttle SET since = since - interval '61 s', blocked_until = now()")
        assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 200


def test_correct_passwords_without_code_are_limited(limited: Server) -> None:
    with limited.client() as client:
        login = new_user(limited, email_2fa=True)
        statuses = [client.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code for _ in range(4)]
        assert statuses == [401, 401, 401, 429]


def test_password_without_code_cannot_use_up_the_logins_of_known_devices(limited: Server) -> None:
    """An attacker with the password but no code must not keep the owner from signing in and changing the password."""
    with limited.client() as attacker, Browser(limited) as owner:
        login, app = new_user(limited, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
        owner.follow(owner.sign_in(login))
        owner.follow(owner.submit("/login/code", otp=app.code()))
        statuses = [attacker.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code for _ in range(5)]
        assert statuses[-1] == 429
        with Browser(limited) as known:
            known.set_cookie(owner.cookie(DEVICE) or "", DEVICE)
            assert known.sign_in(login).status_code == 303
        owner.open_account()
        fields = {"current_password": PASSWORD, "new_password": "a better one", "repeat_password": "a better one"}
        assert owner.submit("/account/password", **fields).status_code == 303
        with Browser(limited) as known:
            fields = {"password": "a better one"}
            known.set_cookie(owner.cookie(DEVICE) or "", DEVICE)
            statuses = [known.sign_in(login, **fields).status_code for _ in range(4)]
            assert statuses[-1] == 429  # known devices have a limit as well


def test_passkeys_have_a_limit_of_their_own(limited: Server) -> None:
    login, passkey = new_user(limited), new_passkey(limited)
    with fresh_browser(limited, login) as browser:
        register(browser, passkey)
    for status in (303, 303, 303, 429):
        with Browser(limited) as browser:
            answer = passkey_sign_in(browser, passkey)
            assert answer.status_code == status
            assert browser.is_signed_in == (status == 303)
    assert 1 <= int(answer.headers["Retry-After"]) <= 61
    events = "SELECT FROM account_events WHERE kind = 'signed_in' AND detail ->> 'auth' = 'passkey' AND user_id = $1"
    assert len(query(limited, events, user_id_of(limited, login))) == 3
    with limited.client() as client:
        assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()["error"] == "otp required"
