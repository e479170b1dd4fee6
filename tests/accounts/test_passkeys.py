"""Passkeys over HTTP: registration, sign-in, second factor, removal, and everything that must be refused."""

import copy
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
import pytest

from tests.kit.browser import VISIT, Browser, fresh_browser, new_user, query, user_id_of
from tests.kit.builders import PASSWORD
from tests.kit.mailbox import mails
from tests.kit.passkey import USER_PRESENT, SoftwarePasskey, page_options
from tests.kit.passkey_sign_in import new_passkey, passkey_sign_in, register
from tests.kit.second_factors import codes_left
from tests.kit.server import Server, until

CODE = re.compile(r"\b\d{4}-\d{4}-\d{4}\b")
WRONG = "Your passkey was not accepted. Please try again, or sign in in another way."


class Owner(NamedTuple):
    login: str
    browser: Browser
    passkey: SoftwarePasskey


@pytest.fixture(scope="module")
def owner(server: Server) -> Iterator[Owner]:
    """A user with one passkey, for tests that change nothing of the account. The browser shows the account page."""
    login, passkey = new_user(server), new_passkey(server)
    with fresh_browser(server, login) as browser:
        browser.follow(register(browser, passkey))
        yield Owner(login, browser, passkey)


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture
def browser(server: Server, login: str) -> Iterator[Browser]:
    with fresh_browser(server, login) as browser:
        yield browser


@pytest.fixture
def passkey(server: Server, browser: Browser) -> SoftwarePasskey:
    """A passkey of the user; the browser shows the account page after its registration."""
    passkey = new_passkey(server)
    browser.follow(register(browser, passkey))
    return passkey


def test_registered_passkey_is_listed_and_ends_other_sessions(server: Server, login: str) -> None:
    passkey = new_passkey(server)
    with fresh_browser(server, login) as browser, fresh_browser(server, login) as other:
        browser.follow(register(browser, passkey, "<b>Phone</b> & more"))
        assert browser.notice == "Your passkey has been added. You have been signed out everywhere else."
        assert "&lt;b&gt;Phone&lt;/b&gt; &amp; more" in browser.page.text
        assert len(set(CODE.findall(browser.page.text))) == 10  # the first second factor comes with recovery codes
        assert not other.is_signed_in
        assert browser.get("/account").status_code == 200
    assert until(lambda: [text for text in mails(server, login) if "A passkey was added" in text])


def test_options_of_the_registration_identify_nobody_and_cannot_end_the_script(server: Server) -> None:
    login = new_user(server, nick="</script><script>alert(1)</script>")
    with fresh_browser(server, login) as browser:
        options = page_options(browser.open_account().text, "passkey-registration")
        assert options["user"]["displayName"] == "</script><script>alert(1)</script>"
        (user,) = query(server, "SELECT user_id FROM users WHERE login = $1", login)
        assert user["user_id"] not in options["user"]["id"]
        assert len(options["user"]["id"]) == 43
        assert options["rp"]["id"] == "localhost"
        assert options["authenticatorSelection"]["userVerification"] == "required"
        assert page_options(browser.open_account().text, "passkey-registration")["challenge"] != options["challenge"]


def test_passkey_signs_in_without_a_password_as_two_factors(server: Server, owner: Owner) -> None:
    with Browser(server) as browser:
        browser.get("/login?next=/account/totp")
        assert 'autocomplete="username webauthn"' in browser.page.text
        options = page_options(browser.page.text)
        assert options["allowCredentials"] == []
        assert options["userVerification"] == "required"
        answer = browser.submit("/login/passkey", credential=owner.passkey.get(options))
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/account/totp"
        assert browser.is_signed_in
    sql = (
        "SELECT s.auth, p.last_used FROM browser_sessions s JOIN users USING (user_id) JOIN passkeys p USING (user_id)"
    )
    rows = query(server, f"{sql} WHERE login = $1 ORDER BY s.created", owner.login)
    assert rows[-1]["auth"] == "passkey"
    assert rows[-1]["last_used"] is not None


def test_several_passkeys_have_one_user_handle(server: Server, browser: Browser, passkey: SoftwarePasskey) -> None:
    second = new_passkey(server)
    before = browser.cookie()
    browser.follow(register(browser, second, "Laptop"))
    assert browser.notice == "Your passkey has been added."
    assert browser.cookie() == before  # a second passkey ends no session
    assert second.user_handle == passkey.user_handle
    for each in (passkey, second):
        with Browser(server) as other:
            assert passkey_sign_in(other, each).status_code == 303


def test_challenge_is_accepted_once(server: Server, owner: Owner) -> None:
    passkey = owner.passkey
    with Browser(server) as browser:
        browser.get("/login")
        visit = browser.cookie(VISIT) or ""
        form, options = browser.form("/login/passkey"), page_options(browser.page.text)
        assert browser.post("/login/passkey", form | {"credential": passkey.get(options)}).status_code == 303
        with Browser(server) as thief:
            thief.set_cookie(visit, VISIT)
            replay = thief.post("/login/passkey", form | {"credential": passkey.get(options)})
            assert replay.status_code == 401
            assert not thief.is_signed_in


def test_wrong_answer_is_refused(server: Server, owner: Owner) -> None:
    wrong: list[dict[str, Any]] = [
        {"origin": "https://evil.example"},
        {"origin": "http://localhost"},
        {"rp_id": "evil.example"},
        {"flags": USER_PRESENT},  # the user was not verified
        {"flags": 0},
        {"challenge": "A" * 75},
        {"challenge": ""},
        {"user_handle": b"x" * 32},
        {"user_handle": b""},
    ]
    with Browser(server) as browser:
        for changes in wrong:
            assert passkey_sign_in(browser, owner.passkey, **changes).status_code == 401, changes
            assert browser.problem == WRONG
            assert browser.cookie() is None
        assert passkey_sign_in(browser, owner.passkey).status_code == 303


def test_malformed_credential_is_refused(server: Server, browser: Browser) -> None:
    wrong = ("", "x", "[]", "{}", "null", '{"rawId": 1}', "[" * 5000)
    with Browser(server) as stranger:
        stranger.get("/login")
        browser.open_account()
        for credential in (*wrong, '{"rawId":"AA","response":{"clientDataJSON":"bnVsbA"}}'):
            assert stranger.submit("/login/passkey", credential=credential).status_code == 401, credential[:10]
            assert stranger.problem == WRONG
            assert browser.submit("/account/passkeys", credential=credential).status_code == 422, credential[:10]
            assert browser.problem == "The passkey could not be added. Please try again."


def test_damaged_signature_and_unknown_passkey_are_refused(server: Server, owner: Owner) -> None:
    tracebacks, passkey = server.log().count("Traceback"), owner.passkey
    with Browser(server) as browser:
        assert passkey_sign_in(browser, new_passkey(server)).status_code == 401
        browser.get("/login")
        answer = orjson.loads(passkey.get(page_options(browser.page.text)))
        for name, value in (("signature", "AAAA"), ("authenticatorData", "AAAA"), ("signature", 5), ("signature", "é")):
            damaged = answer | {"response": answer["response"] | {name: value}}
            fields = browser.form("/login/passkey") | {"credential": orjson.dumps(damaged).decode()}
            assert browser.post("/login/passkey", fields).status_code == 401
    assert server.log().count("Traceback") == tracebacks


def test_challenge_of_another_browser_or_purpose_is_refused(server: Server, owner: Owner) -> None:
    passkey = owner.passkey
    with Browser(server) as other, Browser(server) as third:
        other.get("/login")
        third.get("/login")
        answer = passkey.get(page_options(third.page.text))
        assert other.submit("/login/passkey", credential=answer).status_code == 401
        answer = passkey.get(page_options(owner.browser.open_account().text, "passkey-confirmation"))
        other.get("/login")
        assert other.submit("/login/passkey", credential=answer).status_code == 401


def test_counter_that_goes_back_is_refused_and_reported(server: Server, login: str, passkey: SoftwarePasskey) -> None:
    with Browser(server) as browser:
        assert passkey_sign_in(browser, passkey).status_code == 303
    for _ in range(2):
        with Browser(server) as browser:
            assert passkey_sign_in(browser, passkey, counts=False).status_code == 401
            assert not browser.is_signed_in
    user_id = user_id_of(server, login)
    assert until(lambda: [e["user_id"] for e in server.log_events("passkey.copy_suspected")].count(user_id) == 2)
    assert until(lambda: not query(server, "SELECT FROM outbox"))
    assert len([text for text in mails(server, login) if "there may be a copy of it" in text]) == 1  # in an hour
    with Browser(server) as browser:
        assert passkey_sign_in(browser, passkey).status_code == 303


def test_passkey_without_a_counter_is_accepted_again(server: Server, login: str) -> None:
    passkey = new_passkey(server)
    with fresh_browser(server, login) as browser:
        register(browser, passkey)
    for _ in range(2):
        with Browser(server) as browser:
            assert passkey_sign_in(browser, passkey, counts=False).status_code == 303


def test_passkey_of_a_disabled_user_is_refused(server: Server, login: str, passkey: SoftwarePasskey) -> None:
    server.apply({"users": [{"login": login, "disabled": True}]})
    with Browser(server) as browser:
        assert passkey_sign_in(browser, passkey).status_code == 401


def test_passkey_is_a_second_factor_after_the_password(server: Server, owner: Owner) -> None:
    with Browser(server) as browser:
        browser.follow(browser.sign_in(owner.login, next="/account/totp"))
        assert not browser.is_signed_in
        options = page_options(browser.page.text)
        assert len(options["allowCredentials"]) == 1
        # As a second factor, a passkey need not verify its user: the password was correct.
        answer = browser.submit("/login/code/passkey", credential=owner.passkey.get(options, flags=USER_PRESENT))
        assert answer.headers["Location"] == "/account/totp"
        assert browser.is_signed_in


def test_passkey_of_another_user_is_no_second_factor(server: Server, owner: Owner) -> None:
    login, other_passkey = new_user(server), new_passkey(server)
    with fresh_browser(server, login) as browser:
        register(browser, other_passkey)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        options = page_options(browser.page.text)
        assert browser.submit("/login/code/passkey", credential=owner.passkey.get(options)).status_code == 401
        assert not browser.is_signed_in
        options = page_options(browser.page.text)
        assert browser.submit("/login/code/passkey", credential=other_passkey.get(options)).status_code == 303


def test_login_operation_accepts_a_recovery_code_of_a_user_with_a_passkey(
    server: Server, browser: Browser, login: str, passkey: SoftwarePasskey
) -> None:
    codes = CODE.findall(browser.page.text)
    body = {"login": login, "password": PASSWORD}
    with server.client() as client:
        answer = client.post("/proxy/api/login", json=body)
        assert (answer.status_code, answer.json()["otp"]) == (401, ["passkey"])
        assert client.post("/proxy/api/login", json=body | {"otp": "123456"}).status_code == 401
        assert client.post("/proxy/api/login", json=body | {"otp": codes[0]}).status_code == 200


def test_passkey_confirms_the_removal_of_another_factor(
    server: Server, browser: Browser, login: str, passkey: SoftwarePasskey
) -> None:
    query(server, "UPDATE users SET email_2fa = true WHERE login = $1", login)
    query(server, "UPDATE browser_sessions SET authenticated = NULL")
    browser.open_account()
    form = browser.form("/account/email-2fa")
    assert browser.post("/account/email-2fa", {"csrf": form["csrf"], "enable": "0"}).status_code == 422
    options = page_options(browser.page.text, "passkey-confirmation")
    wrong = passkey.get(options, flags=USER_PRESENT)
    assert browser.submit("/account/email-2fa", credential=wrong).status_code == 422
    assert browser.problem == "Your passkey was not accepted. Please try again."
    options = page_options(browser.page.text, "passkey-confirmation")
    assert browser.submit("/account/email-2fa", credential=passkey.get(options)).status_code == 303
    assert not query(server, "SELECT 1 FROM users WHERE login = $1 AND email_2fa", login)


def test_removing_a_passkey_requires_recent_authentication_and_ends_sessions(
    server: Server, browser: Browser, login: str, passkey: SoftwarePasskey
) -> None:
    with Browser(server) as other:
        assert passkey_sign_in(other, passkey).status_code == 303
        query(server, "UPDATE browser_sessions SET authenticated = NULL")
        browser.open_account()
        form = browser.form("/account/passkeys/remove")
        assert browser.post("/account/passkeys/remove", form | {"current_password": "wrong"}).status_code == 422
        assert browser.post("/account/passkeys/remove", {"csrf": form["csrf"], "id": form["id"]}).status_code == 422
        options = page_options(browser.page.text, "passkey-confirmation")
        browser.follow(browser.submit("/account/passkeys/remove", credential=passkey.get(options)))
        assert browser.notice == "The passkey has been removed. You have been signed out everywhere else."
        assert not other.is_signed_in
    with Browser(server) as other:
        assert passkey_sign_in(other, passkey).status_code == 401
        assert other.sign_in(login).headers["Location"] == "/account"  # no second factor is left
    assert not query(server, "SELECT 1 FROM recovery_codes JOIN users USING (user_id) WHERE login = $1", login)


def test_last_way_to_sign_in_is_not_removed(
    server: Server, browser: Browser, login: str, passkey: SoftwarePasskey
) -> None:
    query(server, "UPDATE users SET password_hash = NULL WHERE login = $1", login)
    browser.open_account()
    assert browser.submit("/account/passkeys/remove").status_code == 409
    assert browser.problem.startswith("Without it you could not sign in any more.")
    assert query(server, "SELECT passkey_count FROM users WHERE login = $1", login)[0]["passkey_count"] == 1


def test_passkey_of_another_user_cannot_be_changed(server: Server, owner: Owner) -> None:
    owner.browser.open_account()
    id = owner.browser.form("/account/passkeys/rename")["id"]
    with fresh_browser(server, new_user(server)) as other:
        register(other, new_passkey(server))
        other.open_account()
        other.submit("/account/passkeys/rename", id=id, name="Mine")
        other.submit("/account/passkeys/remove", id=id)
    (row,) = query(server, "SELECT name FROM passkeys WHERE id = $1", id)
    assert row["name"] == "My phone"


def test_passkey_can_be_renamed(browser: Browser, passkey: SoftwarePasskey) -> None:
    browser.follow(browser.submit("/account/passkeys/rename", name="Old phone"))
    assert browser.notice == "The passkey has a new name."
    assert ">Old phone<" in browser.page.text
    for name in (" ", "x" * 65):
        assert browser.submit("/account/passkeys/rename", name=name).status_code == 422
    assert ">Old phone<" in browser.open_account().text


def test_credential_id_is_registered_once(server: Server, owner: Owner) -> None:
    with fresh_browser(server, new_user(server)) as other:
        assert register(other, copy.copy(owner.passkey)).status_code == 422
        assert other.problem == "The passkey could not be added. Please try again."
        assert other.is_signed_in


def test_registration_challenge_is_accepted_once(server: Server, browser: Browser, passkey: SoftwarePasskey) -> None:
    second = new_passkey(server)
    options = page_options(browser.open_account().text, "passkey-registration")
    form = browser.form("/account/passkeys")
    assert browser.post("/account/passkeys", form | {"credential": second.create(options)}).status_code == 303
    third = new_passkey(server)
    assert browser.post("/account/passkeys", form | {"credential": third.create(options)}).status_code == 422


def test_user_has_at_most_twenty_passkeys(server: Server, browser: Browser, login: str) -> None:
    query(server, "UPDATE users SET passkey_count = 20 WHERE login = $1", login)
    assert register(browser, new_passkey(server)).status_code == 422
    assert browser.problem.startswith("You have 20 passkeys, which is the maximum.")


def test_registration_requires_recent_authentication(server: Server, browser: Browser, login: str) -> None:
    query(server, "UPDATE browser_sessions SET authenticated = NULL")
    browser.open_account()
    answer = new_passkey(server).create(page_options(browser.page.text, "passkey-registration"))
    form = {"csrf": browser.form("/account/passkeys")["csrf"], "credential": answer}
    assert browser.post("/account/passkeys", form).status_code == 422
    assert not query(server, "SELECT 1 FROM passkeys JOIN users USING (user_id) WHERE login = $1", login)
    assert browser.post("/account/passkeys", form | {"current_password": PASSWORD}).status_code == 303


def test_operator_reset_removes_passkeys_and_recovery_codes(
    server: Server, login: str, passkey: SoftwarePasskey
) -> None:
    assert '"passkey"' in server.sso("user", "show", login, "--json").stdout
    assert "passkey" in server.sso("user", "list", "--search", login).stdout
    assert codes_left(server, login) == 10
    server.sso("user", "reset-2fa", login)
    assert codes_left(server, login) == 0
    with Browser(server) as browser:
        assert passkey_sign_in(browser, passkey).status_code == 401
        assert browser.sign_in(login).headers["Location"] == "/account"


def test_sign_in_form_does_not_tell_whether_a_user_has_a_passkey(server: Server, owner: Owner) -> None:
    def page(name: str) -> str:
        with Browser(server) as browser:
            browser.sign_in(name, "wrong")
            text = browser.page.text.replace(name, "NAME")
            return re.sub(r'"challenge":"[^"]+"|value="[^"]{43}"', "", text)

    assert page(owner.login) == page("nobody@example.com") == page(new_user(server))
