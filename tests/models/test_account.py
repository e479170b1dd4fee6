"""An account with its factors: what signs in, what ends which sessions, and each recovery code once."""

from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tests.kit.browser import AuthenticatorApp, Browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.second_factors import CODE, displayed_secret
from tests.kit.server import Server
from tests.models.machine import ServiceMachine, check_model

API_LOGIN = "/proxy/api/login"
BROWSERS = st.integers(0, 1)
PROOFS = st.sampled_from(["none", "app", "recovery", "used"])
MAX_REFUSED = 3  # more would block the account for a while


class Account(ServiceMachine):
    def __init__(self) -> None:
        super().__init__()
        self.login, self.password = new_user(self.server), PASSWORD
        self.browsers = [Browser(self.server), Browser(self.server)]
        self.signed_in = [False, False]
        self.secret = ""
        self.codes: list[str] = []
        self.used_codes: list[str] = []
        self.tokens: dict[str, bool] = {}
        self.refused = self.passwords = 0

    @rule(number=BROWSERS, proof=PROOFS)
    def sign_in(self, number: int, proof: str) -> None:
        self._sign_in(number, self.password, proof)

    @precondition(lambda self: self.refused < MAX_REFUSED)
    @rule(number=BROWSERS)
    def sign_in_with_wrong_password(self, number: int) -> None:
        self._open_login(number)
        assert self.browsers[number].submit("/login", login=self.login, password="wrong").status_code == 401
        self.refused += 1

    @rule(number=BROWSERS)
    def sign_out(self, number: int) -> None:
        if self.signed_in[number]:
            self.browsers[number].open_account()
            self.browsers[number].submit("/logout")
            self.signed_in[number] = False

    @rule(proof=PROOFS)
    def sign_in_game(self, proof: str) -> None:
        """The login of the API: a token that lasts until the sessions end."""
        if self.secret and proof in ("none", "used"):
            return
        fields = {"login": self.login, "password": self.password} | ({"otp": self._code(proof)} if self.secret else {})
        answer = self._post(fields)
        assert answer.status_code == 200, answer.text
        self.tokens[answer.json()["token"]] = True

    @precondition(lambda self: any(self.signed_in) and not self.secret)
    @rule()
    def set_up_app(self) -> None:
        number, browser = self._someone()
        browser.get("/account/totp")
        secret = displayed_secret(browser)
        code = AuthenticatorApp(secret).code()
        browser.follow(browser.submit("/account/totp", otp=code, current_password=self.password))
        self.secret = secret
        self.codes, self.used_codes = CODE.findall(browser.page.text), []
        assert len(self.codes) == 10
        self._end_others(number)

    @precondition(lambda self: any(self.signed_in) and self.secret)
    @rule()
    def remove_app(self) -> None:
        number, browser = self._someone()
        browser.open_account()
        fields = {"current_password": self.password, "present_otp": self._code("app")}
        browser.follow(browser.submit("/account/totp/remove", **fields))
        self.secret, self.codes, self.used_codes = "", [], []
        self._end_others(number)

    @precondition(lambda self: any(self.signed_in))
    @rule()
    def change_password(self) -> None:
        number, browser = self._someone()
        self.passwords += 1
        new = f"{PASSWORD} {self.passwords}"
        browser.open_account()
        fields = {"current_password": self.password, "new_password": new, "repeat_password": new}
        if self.secret:
            fields["present_otp"] = self._code("app")
        assert browser.submit("/account/password", **fields).status_code == 303
        self.password = new
        self._end_others(number)

    @invariant()
    def sessions_are_as_expected(self) -> None:
        assert [browser.is_signed_in for browser in self.browsers] == self.signed_in

    @invariant()
    def tokens_are_as_expected(self) -> None:
        assert {token: self._post({"token": token}).status_code == 200 for token in self.tokens} == self.tokens

    def teardown(self) -> None:
        for browser in self.browsers:
            browser.http.close()

    def _sign_in(self, number: int, password: str, proof: str) -> None:
        browser = self.browsers[number]
        self._open_login(number)
        answer = browser.submit("/login", login=self.login, password=password)
        assert answer.status_code == 303, answer.text
        if not self.secret:
            self.signed_in[number] = True
            return
        browser.follow(answer)
        if proof == "none" or (proof == "used" and self.refused >= MAX_REFUSED):
            return  # the second step is left open, which signs nobody in
        is_right = proof != "used"
        if not is_right and not self.used_codes:
            return
        answer = browser.submit("/login/code", otp=self._code(proof))
        assert (answer.status_code == 303) is is_right, answer.text
        self.refused += not is_right
        self.signed_in[number] = is_right

    def _open_login(self, number: int) -> None:
        self.browsers[number].http.cookies.clear()
        self.signed_in[number] = False
        self.browsers[number].get("/login")

    def _someone(self) -> tuple[int, Browser]:
        number = self.signed_in.index(True)
        return number, self.browsers[number]

    def _end_others(self, kept: int) -> None:
        self.signed_in = [number == kept for number in range(len(self.browsers))]
        self.tokens = dict.fromkeys(self.tokens, False)

    def _code(self, proof: str) -> str:
        if proof == "used":
            return self.used_codes[0]
        if proof == "recovery" and len(self.codes) > 1:
            self.used_codes.append(self.codes.pop())
            return self.used_codes[-1]
        query(self.server, "UPDATE users SET totp_last_step = 0 WHERE login = $1", self.login)
        return AuthenticatorApp(self.secret).code()

    def _post(self, fields: dict[str, Any]) -> httpx.Response:
        return self.browsers[0].http.post(API_LOGIN, json=fields)


def test_account(server: Server) -> None:
    check_model(Account, server)
