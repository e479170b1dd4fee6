"""Strangers who guess passwords cannot lock out devices that have logged in to the account before."""

from contextlib import ExitStack

import pytest

from sso.accounts.known_device_store import MAX_FACTORS
from sso.accounts.known_devices import EARLIER, MAX_ACCOUNTS, FactorDevice, KnownDevices
from sso.core.encryption import Keyring, MasterKey
from sso.core.ids import secret_token
from sso.db.database import Database
from sso.services import Services
from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET, add_user
from tests.kit.server import Server

LOGIN = "/proxy/api/login"
DEVICE = "sso_device"
FREE = 5


def lock_out(server: Server, login: str) -> None:
    """A stranger sends wrong passwords until the account is blocked; the block is then extended."""
    with server.client() as stranger:
        for _ in range(FREE):
            assert stranger.post(LOGIN, json={"login": login, "password": "wrong"}).status_code == 401
        lengthen_waits(server)
        assert stranger.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 429


def lengthen_waits(server: Server) -> None:
    """Extends new blocks to longer than a test takes."""
    query(server, "UPDATE throttle SET blocked_until = now() + interval '1 minute' WHERE failures = $1", FREE)


def signed_out(server: Server, login: str) -> Browser:
    """Returns the owner's browser, which has logged in once and logged out again."""
    browser = fresh_browser(server, login)
    browser.open_account()
    browser.submit("/logout")
    assert browser.cookie() is None
    return browser


def test_stranger_cannot_lock_out_a_browser_that_has_signed_in_before(server: Server) -> None:
    login = new_user(server)
    with signed_out(server, login) as browser:
        lock_out(server, login)
        assert browser.sign_in(login).status_code == 303
    with Browser(server) as unknown:
        assert unknown.sign_in(login).status_code == 429


def test_stranger_cannot_lock_out_the_second_factor_of_a_known_browser(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        assert browser.submit("/login/code", otp=app.code()).status_code == 303
        browser.open_account()
        browser.submit("/logout")
        lock_out(server, login)
        browser.follow(browser.sign_in(login))
        assert browser.submit("/login/code", otp=app.code()).status_code == 303


def test_correct_password_without_code_does_not_create_a_known_device(server: Server) -> None:
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


def test_known_device_has_its_own_limit(server: Server) -> None:
    login = new_user(server)
    with signed_out(server, login) as browser, Browser(server) as unknown:
        statuses = [browser.sign_in(login, "wrong").status_code for _ in range(FREE + 1)]
        assert statuses == [401] * FREE + [429]
        assert unknown.sign_in(login).status_code == 303


def test_devices_collected_with_an_old_password_share_one_limit(server: Server) -> None:
    """An attacker who knew the password for a day may have logged in many times, with a new device each time."""
    login, factors = new_user(server), [secret_token() for _ in range(2)]
    with ExitStack() as stack:
        client = stack.enter_context(server.client())
        browsers = [stack.enter_context(signed_out(server, login)) for _ in range(2)]
        for factor in factors:
            assert client.post(LOGIN, json={"login": login, "password": PASSWORD, "factor": factor}).status_code == 200
        server.apply({"users": [{"login": login, "password": "another one"}]})
        first, *others = browsers
        assert [first.sign_in(login, "wrong").status_code for _ in range(FREE)] == [401] * FREE
        lengthen_waits(server)
        assert [browser.sign_in(login, "wrong").status_code for browser in others] == [429] * len(others)
        for factor in factors:
            answer = client.post(LOGIN, json={"login": login, "password": "wrong", "factor": factor})
            assert answer.status_code == 429


def test_stranger_cannot_lock_out_devices_that_signed_in_before_the_password_was_changed(server: Server) -> None:
    login, factor = new_user(server), secret_token()
    fields = {"login": login, "password": PASSWORD, "factor": factor}
    with signed_out(server, login) as browser, server.client() as client:
        assert client.post(LOGIN, json=fields).status_code == 200
        server.sso("user", "set-password", login, "--password-stdin", stdin=PASSWORD)
        lock_out(server, login)
        assert browser.sign_in(login).status_code == 303
        assert client.post(LOGIN, json=fields).status_code == 200


@pytest.mark.parametrize("change", ["/account/password", "/account/sessions/end-others"])
def test_browser_that_ended_all_other_sessions_keeps_its_own_limit(server: Server, change: str) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as owner, signed_out(server, login) as thief, fresh_browser(server, login):
        owner.open_account()
        passwords = {"current_password": PASSWORD, "new_password": PASSWORD, "repeat_password": PASSWORD}
        owner.submit(change, **passwords if change == "/account/password" else {})
        owner.open_account()
        owner.submit("/logout")
        assert [thief.sign_in(login, "wrong").status_code for _ in range(FREE)] == [401] * FREE
        lock_out(server, login)
        assert thief.sign_in(login).status_code == 429
        assert owner.sign_in(login).status_code == 303


def test_device_cookie_of_another_account_is_not_recognized(server: Server) -> None:
    victim, other = new_user(server), new_user(server)
    with signed_out(server, other) as browser:
        lock_out(server, victim)
        assert browser.sign_in(victim).status_code == 429


def test_device_cookie_is_no_credential_and_is_http_only(server: Server) -> None:
    login = new_user(server)
    with Browser(server) as browser:
        answer = browser.sign_in(login)
        (header,) = [value for value in answer.headers.get_list("Set-Cookie") if value.startswith(DEVICE)]
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(header.split("; "))
        assert int(header.partition("Max-Age=")[2].partition(";")[0]) >= 300 * 86400
        with Browser(server) as thief:
            thief.set_cookie(browser.cookie(DEVICE) or "", DEVICE)
            assert not thief.is_signed_in


def test_one_browser_is_a_known_device_of_several_accounts(server: Server) -> None:
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


async def test_forged_device_cookies_are_not_recognized(services: Services, database: Database) -> None:
    devices, ann, bob = services.known_devices, await add_user(services), await add_user(services)
    good = devices.cookie_for(ann, "")
    assert await devices.recognize_browser(ann.login_key, good)
    name, entry = good.split(".")
    mac, other = entry.partition("~")[2], devices.cookie_for(ann, "")
    stranger = KnownDevices(database, services.users, Keyring([MasterKey.generate()])).cookie_for(ann, "")
    forged = ["", "x", ".", name, f"{name}.", f"{name}.{mac}", f"{name}.{entry[:-1]}", f"{name}.0~{'A' * 43}"]
    forged += [f"{name}.{ann.valid_from + 1}~{mac}", f"{name}.~{mac}", f"{secret_token()}.{entry}", f"{good}."]
    forged += [f"{other.split('.')[0]}.{entry}", f"é{good[1:]}", stranger, ".".join([name] + [entry] * 50)]
    for cookie in forged:
        assert await devices.recognize_browser(ann.login_key, cookie) == "", cookie
        assert await devices.recognize_browser(
            ann.login_key, devices.cookie_for(ann, cookie)
        )  # a login replaces a forged cookie
    assert await devices.recognize_browser(bob.login_key, good) == ""


async def test_device_cookie_keeps_its_name_and_the_latest_accounts(services: Services) -> None:
    devices, cookie = services.known_devices, ""
    first, *others = [await add_user(services) for _ in range(MAX_ACCOUNTS + 1)]
    for user in (first, *others, others[0]):
        cookie = devices.cookie_for(user, cookie)
    names = {await devices.recognize_browser(user.login_key, cookie) for user in others}
    assert len(names - {"", EARLIER}) == len(names) == 1
    assert await devices.recognize_browser(first.login_key, cookie) == ""
    assert devices.cookie_for(others[0], cookie) == cookie


async def test_device_cookie_survives_a_change_of_the_master_key(services: Services, database: Database) -> None:
    old, ann = MasterKey.generate(), await add_user(services)
    cookie = KnownDevices(database, services.users, Keyring([old])).cookie_for(ann, "")
    changed = KnownDevices(database, services.users, Keyring([MasterKey.generate(), old]))
    assert await changed.recognize_browser(ann.login_key, cookie)


async def test_login_that_started_before_a_revocation_does_not_create_a_known_factor(services: Services) -> None:
    user = await add_user(services)
    device = await services.known_devices.recognize_factor(user.login_key, "factor")
    await services.users.revoke_all(user.user_id)
    await services.known_devices.remember(user, device)
    assert not (await services.known_devices.recognize_factor(user.login_key, "factor")).name


async def test_number_of_known_factors_is_limited(services: Services) -> None:
    user = await add_user(services)
    for number in range(MAX_FACTORS + 3):
        device = await services.known_devices.recognize_factor(user.login_key, f"factor {number}")
        await services.known_devices.remember(user, device)
    known = [
        number
        for number in range(MAX_FACTORS + 3)
        if (await services.known_devices.recognize_factor(user.login_key, f"factor {number}")).name
    ]
    assert known == list(range(3, MAX_FACTORS + 3))


@pytest.mark.parametrize("how", ["recognize_factor", "recognize_place"])
async def test_known_factor_or_place_survives_a_change_of_the_master_key(
    services: Services, database: Database, how: str
) -> None:
    old, new, ann = MasterKey.generate(), MasterKey.generate(), await add_user(services)

    def devices_with(*keys: MasterKey) -> KnownDevices:
        return KnownDevices(database, services.users, Keyring(keys))

    async def recognized(*keys: MasterKey) -> FactorDevice:
        device: FactorDevice = await getattr(devices_with(*keys), how)(ann.login_key, "a")
        return device

    await devices_with(old).remember(ann, await recognized(old))
    for keys in ((new, old), (MasterKey.generate(), new, old), (old, new)):
        assert (await recognized(*keys)).name not in {"", EARLIER}
    assert not (await recognized(old, new)).should_remember
    await devices_with(new, old).remember(ann, await recognized(new, old))
    for later_keys in ((new,), (new, old), (old, new)):
        device = await recognized(*later_keys)
        assert device.name not in {"", EARLIER}
        assert not device.should_remember, "it is stored once for each first key"
    assert not (await recognized(MasterKey.generate())).name


async def test_latest_login_with_any_master_key_decides_whether_a_device_is_from_before_a_revocation(
    services: Services, database: Database
) -> None:
    """Nodes may have the two keys in another order while the key is changed."""
    old, new, ann = MasterKey.generate(), MasterKey.generate(), await add_user(services)
    first = KnownDevices(database, services.users, Keyring([old, new]))
    second = KnownDevices(database, services.users, Keyring([new, old]))
    await first.remember(ann, await first.recognize_factor(ann.login_key, "factor"))
    await database.run_sql("UPDATE known_factors SET expires = expires - interval '1 hour'", [])
    revoke = (
        "UPDATE users SET valid_from = extract(epoch FROM now() - interval '30 minutes')::bigint WHERE user_id = $1"
    )
    await database.run_sql(revoke, [ann.user_id])
    assert (await second.recognize_factor(ann.login_key, "factor")).name == EARLIER
    ann = await services.users.get_by_login(ann.login) or ann
    await second.remember(ann, await second.recognize_factor(ann.login_key, "factor"))
    assert (await first.recognize_factor(ann.login_key, "factor")).name not in {"", EARLIER}
