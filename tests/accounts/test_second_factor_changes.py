"""Every change of second factors requires the current factor, revokes other sessions and is announced by mail."""

import orjson
import pytest
import trio

from sso.core.encryption import Keyring
from sso.services import Services
from tests.kit.browser import (
    AuthenticatorApp,
    Browser,
    forget_authentication,
    fresh_browser,
    mailed_codes,
    new_user,
    query,
)
from tests.kit.builders import PASSWORD, TOTP_SECRET, add_user
from tests.kit.mailbox import all_mails, mails
from tests.kit.second_factors import displayed_secret
from tests.kit.server import Server, until

LOGIN = "/proxy/api/login"


def notices(server: Server, login: str) -> list[str]:
    """Returns the first lines of the mails about changes, for one recipient."""
    return [text.splitlines()[0] for text in mails(server, login, "Two-step sign-in for 127.0.0.1 was changed")]


def is_notified(server: Server, login: str, text: str) -> bool:
    return bool(until(lambda: text in notices(server, login)))


def sign_in_with(browser: Browser, login: str, code: str) -> None:
    browser.follow(browser.sign_in(login))
    assert browser.submit("/login/code", otp=code).status_code == 303
    browser.open_account()


def api_token(server: Server, login: str, **fields: str) -> str:
    with server.client() as client:
        answer = client.post(LOGIN, json={"login": login, "password": PASSWORD, **fields})
        assert answer.status_code == 200
        return str(answer.json()["token"])


def token_works(server: Server, token: str) -> bool:
    with server.client() as client:
        return client.post(LOGIN, json={"token": token}).status_code == 200


def allow_another_mail(server: Server) -> None:
    query(server, "UPDATE email_codes SET sent = sent - interval '61 s'")


def test_totp_setup_ends_other_sessions(server: Server) -> None:
    login = new_user(server)
    token = api_token(server, login)
    with fresh_browser(server, login) as browser, fresh_browser(server, login) as other:
        before = browser.cookie()
        browser.get("/account/totp")
        code = AuthenticatorApp(displayed_secret(browser)).code()
        browser.follow(browser.submit("/account/totp", otp=code, current_password=PASSWORD))
        assert browser.notice == "Your authenticator app has been set up. You have been signed out everywhere else."
        assert browser.cookie() != before
        assert not other.is_signed_in
        # The browser with the cookie of the ended session is told why, and no other.
        why = "You were signed out because two-step sign-in or a passkey was changed."
        assert why in other.get("/login").text
        with Browser(server) as stranger:
            assert why not in stranger.get("/login").text
    assert not token_works(server, token)
    assert is_notified(server, login, "An authenticator app was set up for your account.")


def test_removing_totp_requires_a_code(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        sign_in_with(browser, login, app.code())
        for code in ("", app.wrong()):
            answer = browser.submit("/account/totp/remove", current_password=PASSWORD, present_otp=code)
            assert answer.status_code == 422
            assert browser.problem == "This code is incorrect or has already been used."
        token = api_token(server, login, otp=app.code())
        query(server, "UPDATE users SET totp_last_step = 0 WHERE login = $1", login)
        code = AuthenticatorApp(TOTP_SECRET).code()  # any recent code, after the reset above
        browser.follow(browser.submit("/account/totp/remove", current_password=PASSWORD, present_otp=code))
        assert browser.notice == "The authenticator app has been removed. You have been signed out everywhere else."
    assert not token_works(server, token)
    assert is_notified(server, login, "The authenticator app was removed from your account.")
    with Browser(server) as browser:
        assert browser.sign_in(login).headers["Location"] == "/account"


def test_turning_email_codes_off_requires_an_email_code(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser, fresh_browser(server, login) as other:
        browser.open_account()
        browser.follow(browser.submit("/account/email-2fa", current_password=PASSWORD))
        assert browser.notice == "Your change has been saved. You have been signed out everywhere else."
        assert not other.is_signed_in
        assert is_notified(server, login, "Codes by e-mail were turned on for your account.")
        assert browser.submit("/account/email-2fa", current_password=PASSWORD).status_code == 422
        fields = browser.form("/account/email-2fa") | {"form": "email_2fa"}
        browser.page = browser.post("/account/code", fields)
        assert browser.notice == "We have sent you a code. Check your e-mail."
        (code,) = mailed_codes(server, login)
        browser.follow(browser.submit("/account/email-2fa", current_password=PASSWORD, present_otp=code))
    assert is_notified(server, login, "Codes by e-mail were turned off for your account.")
    with Browser(server) as browser:
        assert browser.sign_in(login).headers["Location"] == "/account"


@pytest.mark.parametrize("form", ["export", "delete"])
def test_code_can_be_sent_for_a_form_about_personal_data(server: Server, form: str) -> None:
    login = new_user(server, email_2fa=True)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        browser.follow(browser.submit("/login/code", otp=mailed_codes(server, login)[0]))
        user_ids = "SELECT user_id FROM users WHERE login = $1"
        query(server, f"UPDATE browser_sessions SET authenticated = NULL WHERE user_id IN ({user_ids})", login)
        browser.open_account()
        assert f'formaction="/account/code" formnovalidate name="form" value="{form}"' in browser.page.text
        browser.page = browser.post("/account/code", browser.form(f"/account/{form}") | {"form": form})
        assert browser.notice == "We have sent you a code. Check your e-mail."
        code = mailed_codes(server, login, 2)[1]
        answer = browser.submit(f"/account/{form}", current_password=PASSWORD, present_otp=code)
        assert answer.status_code == 200
        assert not browser.problem


def test_late_totp_setup_requires_an_email_code_if_those_are_on(server: Server) -> None:
    login = new_user(server, email_2fa=True)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        browser.submit("/login/code", otp=mailed_codes(server, login)[0])
        forget_authentication(server)
        browser.get("/account/totp")
        assert browser.submit("/account/totp/confirm", current_password=PASSWORD).status_code == 422
        assert browser.problem == "This code is incorrect or has already been used."
        allow_another_mail(server)
        browser.page = browser.post("/account/totp/code", browser.form("/account/totp/confirm"))
        assert browser.notice == "We have sent you a code. Check your e-mail."
        code = mailed_codes(server, login, 2)[1]
        browser.follow(browser.submit("/account/totp/confirm", current_password=PASSWORD, present_otp=code))
        app = AuthenticatorApp(displayed_secret(browser))
        assert browser.submit("/account/totp", otp=app.code()).status_code == 303


def test_totp_cannot_be_replaced_late_without_its_code(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        sign_in_with(browser, login, app.code())
        forget_authentication(server)
        browser.get("/account/totp")
        assert browser.submit("/account/totp/confirm", current_password=PASSWORD).status_code == 422
        browser.follow(browser.submit("/account/totp/confirm", current_password=PASSWORD, present_otp=app.code()))
        new_app = AuthenticatorApp(displayed_secret(browser))
        assert browser.submit("/account/totp", otp=new_app.code()).status_code == 303


def test_blocked_factor_cannot_be_turned_off(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        sign_in_with(browser, login, app.code())
        block = "INSERT INTO factor_guesses (user_id, factor, attempts) SELECT user_id, 'totp', 20 FROM users"
        query(server, f"{block} WHERE login = $1", login)
        answer = browser.submit("/account/totp/remove", current_password=PASSWORD, present_otp=app.code())
        assert answer.status_code == 403
        assert browser.problem.startswith("Too many wrong codes were entered")


def test_enrolment_works_once(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser:
        browser.get("/account/totp")
        secret, setup = displayed_secret(browser), browser.form("/account/totp")["setup"]
        app = AuthenticatorApp(secret)
        browser.follow(browser.submit("/account/totp", otp=app.code(), current_password=PASSWORD))
        browser.follow(browser.submit("/account/totp/remove", current_password=PASSWORD, present_otp=app.code()))
        browser.get("/account/totp")
        code = AuthenticatorApp(secret).code()  # a code may be used again after the removal
        answer = browser.submit("/account/totp", setup=setup, otp=code, current_password=PASSWORD)
        assert answer.headers["Location"] == "/account/totp"
        browser.open_account()
        assert "/account/totp/remove" not in browser.page.text


def test_enrolment_is_bound_to_one_browser(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser, fresh_browser(server, login) as other:
        for each in (browser, other):
            each.get("/account/totp")
        app, setup = AuthenticatorApp(displayed_secret(other)), other.form("/account/totp")["setup"]
        answer = browser.submit("/account/totp", setup=setup, otp=app.code(), current_password=PASSWORD)
        assert answer.headers["Location"] == "/account/totp"


def test_enrolment_expires(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser:
        browser.get("/account/totp")
        session = "SELECT s.id, u.user_id, u.valid_from FROM browser_sessions s JOIN users u USING (user_id)"
        (row,) = query(server, f"{session} WHERE login = $1", login)
        ring = Keyring.from_file(server.folder / "data" / "secret.key")
        purpose = f"totp setup:{row['user_id']}:{row['valid_from']}:{row['id']}"
        began, secret = orjson.loads(ring.decrypt(purpose, browser.form("/account/totp")["setup"]))
        old = ring.encrypt(purpose, orjson.dumps([began - 601, secret]).decode())
        proof = {"otp": AuthenticatorApp(secret).code(), "current_password": PASSWORD}
        assert browser.submit("/account/totp", setup=old, **proof).status_code == 422
        assert browser.problem == "The key has expired. Please add the new key to your app."
        assert displayed_secret(browser) != secret


async def test_one_of_several_concurrent_enrolments_succeeds(services: Services) -> None:
    user = await add_user(services)
    changed = []

    async def enrol(number: int) -> None:
        sealed = services.second_factors.encrypt_totp(user.user_id, TOTP_SECRET)
        if await services.second_factor_changes.set_totp(user, sealed, number):
            changed.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(enrol, number)
    assert len(changed) == 1
    now = await services.users.get(user.user_id)
    assert now is not None
    assert now.totp_last_step == changed[0]


def test_operator_reset_ends_sessions_and_notifies_the_user(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        sign_in_with(browser, login, app.code())
        server.sso("user", "reset-2fa", login)
        assert not browser.is_signed_in
    assert is_notified(server, login, "Support has turned off two-step sign-in for your account.")


def test_factor_change_by_apply_ends_sessions(server: Server) -> None:
    for change in ({"totp_secret": TOTP_SECRET}, {"email_2fa": True}):
        login = new_user(server)
        with fresh_browser(server, login) as browser:
            server.apply({"users": [{"login": login, **change}]})
            assert not browser.is_signed_in, change


def test_notice_is_in_the_language_of_the_user(server: Server) -> None:
    login = new_user(server, lang="fr")
    with fresh_browser(server, login) as browser:
        browser.open_account()
        assert browser.submit("/account/email-2fa", current_password=PASSWORD).status_code == 303

    def subjects() -> list[str]:
        return [mail.subject for mail in all_mails(server) if mail.recipient == login]

    assert until(subjects) == ["Changement de la connexion en deux étapes à 127.0.0.1"]
