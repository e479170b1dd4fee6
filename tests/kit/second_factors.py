"""Second factors of a user, set up on the account page."""

import re

from tests.kit.browser import AuthenticatorApp, Browser, query
from tests.kit.builders import PASSWORD
from tests.kit.server import Server


def displayed_secret(browser: Browser) -> str:
    match = re.search(r"<code>([A-Z2-7 ]+)</code>", browser.page.text)
    assert match
    return match[1].replace(" ", "")


CODE = re.compile(r"\b\d{4}-\d{4}-\d{4}\b")


def codes_left(server: Server, login: str) -> int:
    sql = "SELECT count(*) AS count FROM recovery_codes JOIN users USING (user_id) WHERE login = $1"
    return int(query(server, sql, login)[0]["count"])


def enrol(browser: Browser) -> tuple[AuthenticatorApp, list[str]]:
    """Sets up an authenticator app in a signed-in browser. Returns the app and the recovery codes."""
    browser.get("/account/totp")
    app = AuthenticatorApp(displayed_secret(browser))
    browser.follow(browser.submit("/account/totp", otp=app.code(), current_password=PASSWORD))
    return app, CODE.findall(browser.page.text)
