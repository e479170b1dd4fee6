"""Every form with a password field has the account name for password managers and screen readers."""

from html.parser import HTMLParser

import pytest

from tests.kit.browser import AuthenticatorApp, Browser, forget_authentication, new_user
from tests.kit.builders import TOTP_SECRET
from tests.kit.server import Server


class Fields(HTMLParser):
    """Collects the input fields of each form, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[list[dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "form":
            self.forms.append([])
        elif tag == "input" and self.forms:
            self.forms[-1].append(dict(attrs))


@pytest.mark.parametrize("path", ["/login", "/account", "/account/totp"])
def test_password_forms_have_a_username_field_before_the_password(server: Server, path: str) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        if path != "/login":
            browser.follow(browser.sign_in(login))
            browser.submit("/login/code", otp=app.code())
            forget_authentication(server)
        page = browser.get(path)
    kinds = [[field.get("type") for field in form] for form in Fields(page.text).forms]
    names = [
        [(field.get("autocomplete") or "").partition(" ")[0] for field in form] for form in Fields(page.text).forms
    ]
    with_password = [position for position, types in enumerate(kinds) if "password" in types]
    # The account page also has a form for each identity provider that another test has added.
    assert len(with_password) >= {"/login": 1, "/account": 9, "/account/totp": 1}[path]
    for position in with_password:
        assert names[position].index("username") < kinds[position].index("password")
        assert kinds[position][names[position].index("username")] in ("text", "email")
