"""The e-mail address of an account: verifying it, changing it, undoing a change."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest

from tests.kit.browser import (
    AuthenticatorApp,
    Browser,
    Forms,
    fresh_browser,
    mailed_codes,
    new_user,
    query,
    user_id_of,
)
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.mailbox import link_in, mails, path_of, wait_for_mails
from tests.kit.passkey import page_options
from tests.kit.passkey_sign_in import new_passkey, passkey_sign_in, register
from tests.kit.row_locks import changed_when_somebody_waits
from tests.kit.second_factors import displayed_secret, enrol
from tests.kit.server import Server

NEW_PASSWORD = "a longer and better one"
# Tables with what may be added to an account, and their columns with the time.
AGES = {
    "passkeys": "created",
    "linked_identities": "created",
    "recovery_code_sets": "created",
    "device_keys": "created",
    "account_events": "at",
}
LINK = "INSERT INTO linked_identities (id, subject, user_id, provider_id, last_used) VALUES ($1, $1, $1, $2, now())"
KEY = "INSERT INTO device_keys (digest, id, user_id, created) VALUES ($1::text::bytea, $1, $2, now() - $3::interval)"
VERIFY, CONFIRM, CHANGED = "Verify your e-mail address", "Confirm your new e-mail address", "The e-mail address of"
UNDO_REQUESTED = "The change of your e-mail address"


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture
def browser(server: Server, login: str) -> Iterator[Browser]:
    """A signed-in browser on the account page."""
    with fresh_browser(server, login) as browser:
        browser.open_account()
        yield browser


@pytest.fixture
def stranger(server: Server) -> Iterator[Browser]:
    """A browser that is not signed in."""
    with Browser(server) as browser:
        yield browser


@pytest.fixture(scope="module")
def provider(server: Server) -> Iterator[str]:
    server.apply({"identity_providers": [{"id": "steam", "kind": "steam", "name": "Steam"}]})
    yield "steam"
    server.sso("idp", "delete", "steam", "--yes")


def user_row(server: Server, user_id: str) -> dict[str, object]:
    sql = "SELECT login, login_key, email_verified, password_hash FROM users WHERE user_id = $1"
    return dict(query(server, sql, user_id)[0])


def request_change(browser: Browser, new: str, **fields: str) -> int:
    return browser.submit("/account/email", new_email=new, **fields).status_code


def allow_another_mail(server: Server) -> None:
    """Ends the pauses between mails."""
    query(server, "UPDATE throttle SET blocked_until = '-infinity'")


def use_link(browser: Browser, mail: str) -> int:
    link = path_of(link_in(mail))
    browser.get(link)
    if browser.page.status_code != 200:
        return browser.page.status_code
    return browser.submit(link.partition("?")[0]).status_code


def change(server: Server, browser: Browser, stranger: Browser, new: str) -> None:
    allow_another_mail(server)
    browser.open_account()
    assert request_change(browser, new) == 303
    assert use_link(stranger, wait_for_mails(server, new, CONFIRM)[-1]) == 200


def section(browser: Browser) -> str:
    """Returns the section about the address on the account page."""
    text = browser.open_account().text
    return text[text.index('id="email-title"') : text.index('id="password-title"')]


def test_address_is_verified_by_link(server: Server, browser: Browser, stranger: Browser, login: str) -> None:
    assert "Not verified" in browser.page.text
    browser.follow(browser.submit("/account/email/verify"))
    assert "You can ask for another e-mail in" in browser.page.text
    link = path_of(link_in(wait_for_mails(server, login, VERIFY)[0]))
    stranger.get(link)
    assert not user_row(server, user_id_of(server, login))["email_verified"]  # opening the link changes nothing
    assert stranger.submit("/email/verify").status_code == 200
    assert user_row(server, user_id_of(server, login))["email_verified"]
    assert stranger.get(link).status_code == 410
    browser.open_account()
    assert "Not verified" not in browser.page.text


def test_send_again_says_when_the_next_mail_may_be_sent(server: Server, browser: Browser, login: str) -> None:
    form = browser.form("/account/email/verify")
    assert browser.post("/account/email/verify", form).status_code == 303
    again = browser.post("/account/email/verify", form)
    assert again.status_code == 429
    assert "You can ask for another e-mail in" in again.text
    allow_another_mail(server)
    assert browser.post("/account/email/verify", form).status_code == 303
    assert len(wait_for_mails(server, login, VERIFY, 2)) == 2


def test_change_is_confirmed_at_the_new_address(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    user_id, new = user_id_of(server, login), f"New.{login}"
    server.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
    assert request_change(browser, new) == 303
    browser.open_account()
    assert new in browser.page.text
    assert user_row(server, user_id)["login"] == login
    assert use_link(stranger, wait_for_mails(server, new, CONFIRM)[0]) == 200
    row = user_row(server, user_id)
    assert (row["login"], row["login_key"], row["email_verified"]) == (new, new.lower(), True)
    assert browser.is_signed_in
    with Browser(server) as other:
        assert other.sign_in(login).status_code == 401
        assert other.sign_in(new).status_code == 303
    assert new in wait_for_mails(server, login, CHANGED)[0]
    changes = (
        """SELECT user_id, before, after FROM audit WHERE target = $1 AND operation = 'user.save' ORDER BY id DESC"""
    )
    actor, *values = query(server, changes, user_id)[0]
    assert (actor, *map(json.loads, values)) == (user_id, {"login": login}, {"login": new})
    # The permissions stay with the user.
    assert query(server, "SELECT 1 FROM role_assignments WHERE user_id = $1 AND application_id = 1", user_id)
    server.apply({"users": [{"login": new, "nick": "Renamed"}]})
    assert user_id_of(server, new) == user_id


def test_change_of_a_browser_that_was_signed_out_meanwhile_does_not_begin(
    server: Server, browser: Browser, login: str
) -> None:
    """The request waits for a change of the password, which makes links for the address invalid."""
    new, answers = f"thief.{login}", list[int]()
    form = browser.form("/account/email") | {"new_email": new}
    send = threading.Thread(target=lambda: answers.append(browser.post("/account/email", form).status_code))
    revoke = f"UPDATE users SET valid_from = valid_from + 1 WHERE login = '{login}'"
    with changed_when_somebody_waits(server, revoke):
        send.start()
    send.join()
    assert answers == [303]
    links = "SELECT FROM mailed_links WHERE user_id = $1 AND purpose = 'email_change'"
    assert not query(server, links, user_id_of(server, login))
    assert not mails(server, new)


def test_undo_restores_the_address_although_the_password_was_changed(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    """An attacker in the owner's browser takes the account over; the owner gets it back with the mail."""
    user_id, attackers, second = user_id_of(server, login), f"attacker.{login}", f"second.{login}"
    change(server, browser, stranger, attackers)
    change(server, browser, stranger, second)
    browser.open_account()
    fields = {"current_password": PASSWORD, "new_password": NEW_PASSWORD, "repeat_password": NEW_PASSWORD}
    assert browser.submit("/account/password", **fields).status_code == 303
    assert browser.is_signed_in
    with Browser(server) as owner:
        assert use_link(owner, wait_for_mails(server, login, CHANGED)[0]) == 303
        assert user_row(server, user_id)["login"] == login
        assert not browser.is_signed_in
        owner.get("/reset")
        owners = {"new_password": "only the owner knows", "repeat_password": "only the owner knows"}
        assert owner.submit("/reset", **owners).status_code == 303
        assert owner.is_signed_in
    # The attacker's mailbox has an undo link too, for the second change. It no longer works.
    assert use_link(stranger, wait_for_mails(server, attackers, CHANGED)[0]) == 410
    assert user_row(server, user_id)["login"] == login
    assert wait_for_mails(server, second, "changed back")


def test_undo_of_a_later_change_leaves_the_link_of_the_owner(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    """A thief changes the address twice and undoes the second change, in order to end the owner's link."""
    user_id, first, second = user_id_of(server, login), f"thief1.{login}", f"thief2.{login}"
    change(server, browser, stranger, first)
    change(server, browser, stranger, second)
    assert use_link(stranger, wait_for_mails(server, first, CHANGED)[0]) == 303
    assert user_row(server, user_id)["login"] == first
    with Browser(server) as owner:
        assert use_link(owner, wait_for_mails(server, login, CHANGED)[0]) == 303
    assert user_row(server, user_id)["login"] == login


def test_undo_keeps_an_account_that_a_thief_has_closed(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    change(server, browser, stranger, f"closer.{login}")
    browser.open_account()
    fields = {"current_password": PASSWORD, "new_password": NEW_PASSWORD, "repeat_password": NEW_PASSWORD}
    assert browser.submit("/account/password", **fields).status_code == 303
    browser.open_account()
    assert browser.submit("/account/delete").status_code == 200
    with Browser(server) as owner:
        owner.follow(use_link_to_undo(owner, wait_for_mails(server, login, CHANGED)[0]))
        owners = {"new_password": "only the owner knows", "repeat_password": "only the owner knows"}
        assert owner.submit("/reset", **owners).status_code == 303
        assert owner.is_signed_in


def test_undo_removes_what_a_thief_has_added(
    server: Server, browser: Browser, stranger: Browser, login: str, provider: str
) -> None:
    """The thief adds an app, a passkey and a linked account, before and after the change of the address."""
    user_id, passkey = user_id_of(server, login), new_passkey(server)
    app, _ = enrol(browser)
    change(server, browser, stranger, f"adder.{login}")
    browser.follow(register(browser, passkey))
    query(server, LINK, user_id, provider)
    assert can_use(server, f"adder.{login}", app.code())
    with Browser(server) as owner:
        owner.follow(use_link_to_undo(owner, wait_for_mails(server, login, CHANGED)[0]))
        assert "otp" not in owner.form("/reset")
        owners = {"new_password": "only the owner knows", "repeat_password": "only the owner knows"}
        assert owner.follow(owner.submit("/reset", **owners)).status_code == 200
        history = owner.get("/account/history").text
        assert "Passkey removed" in history
        assert "Authenticator app removed" in history
    assert passkey_sign_in(stranger, passkey).status_code == 401
    assert not query(server, "SELECT FROM linked_identities WHERE user_id = $1", user_id)
    assert not query(server, "SELECT FROM recovery_code_sets WHERE user_id = $1", user_id)
    with Browser(server) as thief:
        assert thief.sign_in(login).status_code == 401
        assert thief.sign_in(login, "only the owner knows").headers["Location"] == "/account"


def test_undo_removes_device_keys_that_a_thief_has_added(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    """That of the owner, which is older, stays."""
    user_id = user_id_of(server, login)
    names = [f"{name} {user_id}" for name in ("owner", "thief")]
    for name, age in zip(names, (timedelta(days=9), timedelta()), strict=True):
        query(server, KEY, name, user_id, age)
    change(server, browser, stranger, f"keys.{login}")
    with Browser(server) as owner:
        use_link_to_undo(owner, wait_for_mails(server, login, CHANGED)[0])
    assert [row["id"] for row in query(server, "SELECT id FROM device_keys WHERE user_id = $1", user_id)] == names[:1]


def test_undo_leaves_older_factors_and_the_password(
    server: Server, browser: Browser, stranger: Browser, login: str, provider: str
) -> None:
    """The old address alone does not lead past the second factor of the owner."""
    user_id, passkey = user_id_of(server, login), new_passkey(server)
    app, codes = enrol(browser)
    browser.follow(register(browser, passkey))
    query(server, LINK, user_id, provider)
    a_day_passes(server, user_id)
    change(server, browser, stranger, f"owner.{login}")
    with Browser(server) as other:
        other.follow(undo_after_a_day(server, other, login, user_id))
        assert "otp" in other.form("/reset")
        assert other.submit("/reset", new_password=NEW_PASSWORD, repeat_password=NEW_PASSWORD).status_code == 401
    assert can_use(server, login, app.code())
    assert can_use(server, login, codes[0])
    assert passkey_sign_in(stranger, passkey).status_code == 303
    assert len(query(server, "SELECT FROM linked_identities WHERE user_id = $1", user_id)) == 1


def a_day_passes(server: Server, user_id: str) -> None:
    """What was added to the account is older than the day before a change that follows."""
    for table, column in AGES.items():
        query(server, f"UPDATE {table} SET {column} = now() - interval '25 hours' WHERE user_id = $1", user_id)


def undo_time_passes(server: Server, user_id: str) -> None:
    """A day has passed since the undo was requested."""
    sql = "UPDATE mailed_links SET data = data || '{\"undo_at\": 1}' WHERE user_id = $1 AND data ? 'undo_at'"
    query(server, sql, user_id)


def undo_after_a_day(server: Server, browser: Browser, login: str, user_id: str) -> httpx.Response:
    """Undoes the change of an account with a second factor, for which the undo has to be requested before."""
    undo_mail = wait_for_mails(server, login, CHANGED)[0]
    assert use_link_to_undo(browser, undo_mail).status_code == 200
    undo_time_passes(server, user_id)
    return use_link_to_undo(browser, undo_mail)


def test_undo_waits_a_day_if_the_owner_had_a_second_factor(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    """Whoever reads the old mailbox does not take the account before the owner can notice it."""
    user_id, new = user_id_of(server, login), f"moved.{login}"
    app, _ = enrol(browser)
    a_day_passes(server, user_id)
    change(server, browser, stranger, new)
    undo_mail = wait_for_mails(server, login, CHANGED)[0]
    stranger.get(path_of(link_in(undo_mail)))
    form = stranger.form("/email/undo")
    for _ in range(2):
        answer = stranger.post("/email/undo", form)
        assert (answer.status_code, "not undone yet" in answer.text) == (200, True)
        assert user_row(server, user_id)["login"] == new
    assert stranger.get(path_of(link_in(undo_mail))).status_code == 200
    assert "/email/undo" not in Forms(stranger.page.text).by_action
    assert len(mails(server, login, UNDO_REQUESTED)) == len(wait_for_mails(server, new, UNDO_REQUESTED)) == 1
    assert can_use(server, new, app.code())
    assert login in section(browser)
    undo_time_passes(server, user_id)
    assert use_link_to_undo(stranger, undo_mail).status_code == 303
    assert user_row(server, user_id)["login"] == login


def test_owner_ends_undo_links_with_an_earlier_second_factor(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    user_id, passkey = user_id_of(server, login), new_passkey(server)
    app, codes = enrol(browser)
    browser.follow(register(browser, passkey))
    a_day_passes(server, user_id)
    for factor in ("app", "recovery code", "passkey"):
        new = f"moved-{factor[:3]}.{login}"
        change(server, browser, stranger, new)
        undo_mail = wait_for_mails(server, login, CHANGED)[0]
        assert use_link_to_undo(stranger, undo_mail).status_code == 200
        browser.open_account()
        if factor == "app":
            assert browser.submit("/account/email/undo").status_code == 422  # a recent sign-in is not enough
            wrong = {"current_password": PASSWORD, "present_otp": app.wrong()}
            assert browser.submit("/account/email/undo", **wrong).status_code == 422
            proof = {"present_otp": app.code()}
        elif factor == "recovery code":
            proof = {"present_otp": codes[0]}
        else:
            proof = {"credential": passkey.get(page_options(browser.page.text, "passkey-confirmation"))}
        browser.follow(browser.submit("/account/email/undo", current_password=PASSWORD, **proof))
        assert "no longer works" in browser.notice
        undo_time_passes(server, user_id)
        assert stranger.get(path_of(link_in(undo_mail))).status_code == 410
        assert user_row(server, user_id)["login"] == new
        assert wait_for_mails(server, login, "can no longer be undone")
        login = new


def set_up_app(browser: Browser) -> AuthenticatorApp:
    """Sets up an app in place of an earlier one, shortly after the sign-in."""
    browser.get("/account/totp")
    app, form = AuthenticatorApp(displayed_secret(browser)), browser.form("/account/totp")
    confirmation = ("current_password", "present_otp", "credential")
    fields = {name: value for name, value in form.items() if name not in confirmation}
    assert browser.post("/account/totp", fields | {"otp": app.code()}).status_code == 303
    return app


def assert_cannot_end_undo_links(browser: Browser, **proof: str) -> None:
    browser.open_account()
    assert "/account/email/undo" not in Forms(browser.page.text).by_action
    assert "more than a day before the change" in browser.page.text
    fields = {"csrf": browser.form("/logout")["csrf"], "current_password": PASSWORD, **proof}
    assert browser.post("/account/email/undo", fields).status_code == 422


def test_thief_does_not_end_undo_links_with_a_factor_of_the_thief(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    """Only factors from before the change count, and never codes that are mailed to the address of the thief."""
    user_id, new, passkey = user_id_of(server, login), f"thief.{login}", new_passkey(server)
    change(server, browser, stranger, new)
    browser.open_account()
    csrf = browser.form("/logout")["csrf"]
    assert browser.post("/account/email-2fa", {"csrf": csrf, "enable": "1"}).status_code == 303
    browser.open_account()
    code = {"csrf": browser.form("/logout")["csrf"], "form": "undo"}
    assert browser.post("/account/code", code).status_code == 200
    assert_cannot_end_undo_links(browser, present_otp=mailed_codes(server, new)[-1])
    browser.follow(register(browser, passkey))
    credential = passkey.get(page_options(browser.open_account().text, "passkey-confirmation"))
    assert_cannot_end_undo_links(browser, credential=credential)
    assert_cannot_end_undo_links(browser, present_otp=set_up_app(browser).code())
    assert use_link_to_undo(stranger, wait_for_mails(server, login, CHANGED)[0]).status_code == 303
    assert user_row(server, user_id)["login"] == login


def test_thief_does_not_end_undo_links_with_an_app_in_place_of_that_of_the_owner(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    user_id = user_id_of(server, login)
    enrol(browser)
    query(server, "DELETE FROM recovery_code_sets WHERE user_id = $1", user_id)
    a_day_passes(server, user_id)
    change(server, browser, stranger, f"thief.{login}")
    assert_cannot_end_undo_links(browser, present_otp=set_up_app(browser).code())
    assert use_link_to_undo(stranger, wait_for_mails(server, login, CHANGED)[0]).status_code == 303
    assert user_row(server, user_id)["login"] == login


@pytest.mark.parametrize("by_change", [False, True])
def test_reset_removes_identities_from_before_the_address_was_verified(
    server: Server, stranger: Browser, provider: str, by_change: bool
) -> None:
    """A stranger attaches the address of a victim to an own account. After the victim's reset it is the victim's."""
    login = new_user(server, email_verified=by_change)
    user_id = user_id_of(server, login)
    query(server, LINK, user_id, provider)
    if by_change:
        with fresh_browser(server, login) as browser:
            change(server, browser, stranger, f"victim.{login}")
        login = f"victim.{login}"
    query(server, LINK.replace("$1, $1, $1", "$1 || 'later', $1 || 'later', $1"), user_id, provider)
    reset_password(server, stranger, login)
    subjects = query(server, "SELECT subject FROM linked_identities WHERE user_id = $1", user_id)
    assert [row["subject"] for row in subjects] == ([f"{user_id}later"] if by_change else [])
    assert "Connected account removed" in stranger.get("/account/history").text


def reset_password(server: Server, browser: Browser, login: str) -> None:
    browser.get("/forgot")
    assert browser.submit("/forgot", login=login).status_code == 200
    browser.follow(browser.get(path_of(link_in(wait_for_mails(server, login, "Choose a new password")[0]))))
    fields = {"new_password": NEW_PASSWORD, "repeat_password": NEW_PASSWORD}
    assert browser.follow(browser.submit("/reset", **fields)).status_code == 200


def test_page_of_a_verification_link_names_the_account(server: Server, stranger: Browser) -> None:
    login = new_user(server, nick="Cuckoo")
    with fresh_browser(server, login) as browser:
        browser.open_account()
        browser.submit("/account/email/verify")
        assert "Cuckoo" in stranger.get(path_of(link_in(wait_for_mails(server, login, VERIFY)[0]))).text
        change_to = f"victim.{login}"
        allow_another_mail(server)
        browser.open_account()
        assert request_change(browser, change_to) == 303
    assert "Cuckoo" in stranger.get(path_of(link_in(wait_for_mails(server, change_to, CONFIRM)[0]))).text


def can_use(server: Server, login: str, code: str) -> bool:
    """Returns whether the login operation accepts the password and this code."""
    with server.client() as http:
        answer = http.post("/proxy/api/login", json={"login": login, "password": PASSWORD, "otp": code})
    return answer.status_code == 200


def test_undo_leaves_a_user_disabled(server: Server, browser: Browser, stranger: Browser, login: str) -> None:
    change(server, browser, stranger, f"disabled.{login}")
    server.apply({"users": [{"login": f"disabled.{login}", "disabled": True}]})
    with Browser(server) as owner:
        assert owner.follow(use_link_to_undo(owner, wait_for_mails(server, login, CHANGED)[0])).status_code == 410
        assert owner.sign_in(login).status_code == 401


def test_address_that_an_operator_has_set_cannot_be_undone(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    user_id = user_id_of(server, login)
    change(server, browser, stranger, f"second.{login}")
    server.apply({"users": [{"user_id": user_id, "login": f"third.{login}"}]})
    with Browser(server) as owner:
        assert owner.get(path_of(link_in(wait_for_mails(server, login, CHANGED)[0]))).status_code == 410
    assert user_row(server, user_id)["login"] == f"third.{login}"


def test_code_that_was_mailed_to_the_address_before_does_not_work_after_a_change_by_an_operator(server: Server) -> None:
    login = new_user(server, email_2fa=True)
    new = f"new.{login}"
    assert not can_use(server, login, "")
    (code,) = mailed_codes(server, login)
    server.apply({"users": [{"user_id": user_id_of(server, login), "login": new}]})
    assert not can_use(server, new, code)


def use_link_to_undo(browser: Browser, mail: str) -> httpx.Response:
    browser.get(path_of(link_in(mail)))
    return browser.submit("/email/undo")


def test_taken_address_is_told_to_its_owner_only(server: Server, browser: Browser, login: str) -> None:
    taken = new_user(server)
    assert request_change(browser, taken.upper()) == 303
    first = section(browser).replace(taken.upper(), "…")
    assert "belongs to an account already" in wait_for_mails(server, taken.upper(), "Your e-mail address")[0]
    assert not mails(server, taken.upper(), CONFIRM)
    allow_another_mail(server)
    free = f"free.{login}"
    assert request_change(browser, free) == 303
    assert section(browser).replace(free, "…") == first


def test_address_that_was_taken_in_the_meantime_stays_with_its_owner(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    new = f"race.{login}"
    assert request_change(browser, new) == 303
    new_user(server, login=new)
    assert use_link(stranger, wait_for_mails(server, new, CONFIRM)[0]) == 409
    assert "another account" in stranger.problem
    assert query(server, "SELECT 1 FROM users WHERE login = $1", login)


def test_invalid_and_own_addresses_are_rejected(browser: Browser, login: str) -> None:
    for address in ("", "x", "a@", "a@b@c", "a b@example.com", "a@b\r\nBcc: c@d", "x" * 400):
        assert request_change(browser, address) == 422, address
        assert browser.problem == "Please enter an e-mail address, such as name@example.com."
    assert request_change(browser, login.upper()) == 422
    assert browser.problem == "This is already your e-mail address."


def test_change_asks_for_the_password_and_a_code_unless_the_user_has_just_signed_in(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        assert browser.submit("/login/code", otp=app.code()).status_code == 303
        query(server, "UPDATE browser_sessions SET authenticated = now() - interval '1 hour'")
        browser.open_account()
        new, code = f"new.{login}", app.code()
        assert request_change(browser, new, current_password="wrong", present_otp=code) == 422
        assert request_change(browser, new, current_password=PASSWORD, present_otp=app.wrong()) == 422
        form = browser.form("/account/email") | {"new_email": new}
        del form["current_password"]
        assert browser.post("/account/email", form).status_code == 422
        assert request_change(browser, new, current_password=PASSWORD, present_otp=code) == 303


def test_mails_about_changes_are_limited(server: Server, browser: Browser, login: str) -> None:
    new = f"bombed.{login}"
    assert request_change(browser, new) == 303
    browser.open_account()
    assert request_change(browser, f"second.{login}") == 429
    assert "You can ask for another e-mail in" in browser.problem
    with fresh_browser(server, new_user(server)) as other:
        other.open_account()
        assert request_change(other, new) == 429
        assert request_change(other, new.replace("@", "+1@")) == 429  # the same mailbox
    wait_for_mails(server, new, CONFIRM)
    assert len(mails(server, new)) == 1


def test_cancelled_change_is_void(server: Server, browser: Browser, stranger: Browser, login: str) -> None:
    new = f"cancelled.{login}"
    assert request_change(browser, new) == 303
    mail = wait_for_mails(server, new, CONFIRM)[0]
    browser.open_account()
    assert browser.submit("/account/email/cancel").status_code == 303
    assert use_link(stranger, mail) == 410


def test_password_change_voids_a_pending_change_of_the_address(
    server: Server, browser: Browser, stranger: Browser, login: str
) -> None:
    new = f"thief.{login}"
    assert request_change(browser, new) == 303
    mail = wait_for_mails(server, new, CONFIRM)[0]
    with fresh_browser(server, login) as owner:
        owner.open_account()
        fields = {"current_password": PASSWORD, "new_password": NEW_PASSWORD, "repeat_password": NEW_PASSWORD}
        assert owner.submit("/account/password", **fields).status_code == 303
    assert use_link(stranger, mail) == 410


@pytest.mark.parametrize("page", ["verify", "change", "undo"])
def test_malformed_links_are_no_longer_valid(stranger: Browser, page: str) -> None:
    stranger.get("/login")
    csrf = stranger.form("/login")["csrf"]
    for token in ("", "x", "x" * 43, "%00", "ä"):
        assert stranger.get(f"/email/{page}", params={"token": token}).status_code == 410, token
        assert stranger.post(f"/email/{page}", {"csrf": csrf, "token": token}).status_code == 410, token
    assert stranger.post(f"/email/{page}", {"csrf": "x", "token": "x"}).status_code == 403
