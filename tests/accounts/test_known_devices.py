"""Strangers who guess at an account cannot lock out the devices that have signed in to it before."""

import pytest

from sso.accounts.devices import MAX_ACCOUNTS, MAX_FACTORS, Devices
from sso.core.ids import secret_token
from sso.core.sealed import Keyring, MasterKey
from sso.db.bridge import Database
from sso.services import Services
from tests.kit.browser import App, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET, add_user
from tests.kit.server import Server

LOGIN = "/proxy/api/login"
DEVICE = "sso_device"
FREE = 5


def lock_out(server: Server, login: str) -> None:
    """A stranger guesses until the account must wait, for a long time."""
    with server.client() as stranger:
        for _ in range(FREE):
            assert stranger.post(LOGIN, json={"login": login, "password": "wrong"}).status_code == 401
        query(server, "UPDATE throttle SET blocked_until = now() + interval '1 minute' WHERE failures = $1", FREE)
        assert stranger.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 429


def signed_out(server: Server, login: str) -> Browser:
    """The owner's browser, which has signed in once and signed out again."""
    browser = fresh_browser(server, login)
    browser.open_account()
    browser.submit("/logout")
    assert not browser.is_signed_in
    return browser


def test_stranger_cannot_lock_out_a_browser_that_has_signed_in_before(server: Server) -> None:
    login = new_user(server)
    with signed_out(server, login) as browser:
        lock_out(server, login)
        assert browser.sign_in(login).status_code == 303
    with Browser(server) as unknown:
        assert unknown.sign_in(login).status_code == 429


def test_stranger_cannot_lock_out_the_second_step_of_a_known_browser(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), App(TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        assert browser.submit("/login/code", otp=app.code()).status_code == 303
        browser.open_account()
        browser.submit("/logout")
        lock_out(server, login)
        browser.follow(browser.sign_in(login))
        assert browser.submit("/login/code", otp=app.code()).status_code == 303


def test_right_password_alone_makes_no_known_device(server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        assert browser.cookie(DEVICE) is None
        lock_out(server, login)
        assert browser.sign_in(login).status_code == 429


def test_stranger_cannot_lock_out_a_client_with_a_known_factor(server: Server) -> None:
    login = new_user(server)
    known = {"login": login, "password": PASSWORD, "factor": secret_token()}
    with server.client() as client:
        assert client.post(LOGIN, json=known).status_code == 200
        lock_out(server, login)
        assert client.post(LOGIN, json=known).status_code == 200
        assert client.post(LOGIN, json=known | {"factor": secret_token()}).status_code == 429


def test_stranger_cannot_lock_out_a_signed_in_browser_from_changing_the_password(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser:
        browser.http.cookies.delete(DEVICE)
        browser.open_account()
        lock_out(server, login)
        fields = {"current_password": PASSWORD, "new_password": "a better one", "repeat_password": "a better one"}
        assert browser.submit("/account/password", **fields).status_code == 303


def test_known_device_has_a_limit_of_its_own(server: Server) -> None:
    login = new_user(server)
    with signed_out(server, login) as browser, Browser(server) as unknown:
        statuses = [browser.sign_in(login, "wrong").status_code for _ in range(FREE + 1)]
        assert statuses == [401] * FREE + [429]
        assert unknown.sign_in(login).status_code == 303


def test_device_cookie_of_another_account_does_not_help(server: Server) -> None:
    victim, other = new_user(server), new_user(server)
    with signed_out(server, other) as browser:
        lock_out(server, victim)
        assert browser.sign_in(victim).status_code == 429


def test_device_cookie_is_no_credential_and_is_kept_from_scripts(server: Server) -> None:
    login = new_user(server)
    with Browser(server) as browser:
        answer = browser.sign_in(login)
        (header,) = [value for value in answer.headers.get_list("Set-Cookie") if value.startswith(DEVICE)]
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(header.split("; "))
        assert int(header.partition("Max-Age=")[2].partition(";")[0]) >= 300 * 86400
        with Browser(server) as thief:
            thief.plant(browser.cookie(DEVICE) or "", DEVICE)
            assert not thief.is_signed_in


def test_one_browser_is_known_to_several_accounts(server: Server) -> None:
    first, second = new_user(server), new_user(server)
    with signed_out(server, first) as browser:
        assert browser.sign_in(second).status_code == 303
        browser.open_account()
        browser.submit("/logout")
        for login in (first, second):
            lock_out(server, login)
            assert browser.sign_in(login).status_code == 303
            browser.open_account()
            browser.submit("/logout")


@pytest.fixture
def devices(database: Database, keyring: Keyring) -> Devices:
    return Devices(database, keyring)


async def test_forged_device_cookies_are_unknown(devices: Devices, database: Database) -> None:
    good = devices.cookie_for("ann", "")
    assert devices.known_browser("ann", good)
    name, mac = good.split(".")
    other = devices.cookie_for("ann", "")
    stranger = Devices(database, Keyring([MasterKey.generate()])).cookie_for("ann", "")
    forged = ["", "x", ".", name, f"{name}.", f"{name}.{mac[:-1]}", f"{name}.{'A' * 43}", f"{secret_token()}.{mac}"]
    forged += [f"{other.split('.')[0]}.{mac}", f"{good}.", f"é{good[1:]}", stranger, ".".join([name] + [mac] * 50)]
    for cookie in forged:
        assert devices.known_browser("ann", cookie) == "", cookie
        assert devices.known_browser("ann", devices.cookie_for("ann", cookie))  # a sign-in makes a good one of any
    assert devices.known_browser("bob", good) == ""


async def test_device_cookie_keeps_its_name_and_the_latest_accounts(devices: Devices) -> None:
    cookie = ""
    for number in range(MAX_ACCOUNTS + 1):
        cookie = devices.cookie_for(f"account {number}", cookie)
    names = {devices.known_browser(f"account {number}", cookie) for number in range(1, MAX_ACCOUNTS + 1)}
    assert len(names) == 1
    assert devices.known_browser("account 0", cookie) == ""
    assert devices.cookie_for("account 3", cookie) == cookie


async def test_device_cookie_survives_a_change_of_the_master_key(devices: Devices, database: Database) -> None:
    old = MasterKey.generate()
    cookie = Devices(database, Keyring([old])).cookie_for("ann", "")
    assert Devices(database, Keyring([MasterKey.generate(), old])).known_browser("ann", cookie)


async def test_number_of_known_factors_is_bounded(services: Services) -> None:
    user = await add_user(services)
    for number in range(MAX_FACTORS + 3):
        device = await services.devices.known_factor(user.login_key, f"factor {number}")
        await services.devices.remember(user, device)
    known = [
        number
        for number in range(MAX_FACTORS + 3)
        if (await services.devices.known_factor(user.login_key, f"factor {number}")).name
    ]
    assert known == list(range(3, MAX_FACTORS + 3))
