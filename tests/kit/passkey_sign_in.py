"""Passkeys of a user: registered on the account page, and used to sign in."""

from typing import Any

import httpx

from tests.kit.browser import Browser
from tests.kit.passkey import SoftwarePasskey, page_options
from tests.kit.server import Server


def new_passkey(server: Server) -> SoftwarePasskey:
    """The base URL of the server has a loopback address, for which passkeys use "localhost"."""
    return SoftwarePasskey(server.base_url.replace("127.0.0.1", "localhost"))


def register(browser: Browser, passkey: SoftwarePasskey, name: str = "My phone") -> httpx.Response:
    browser.open_account()
    answer = passkey.create(page_options(browser.page.text, "passkey-registration"))
    return browser.submit("/account/passkeys", credential=answer, name=name)


def passkey_sign_in(browser: Browser, passkey: SoftwarePasskey, **changes: Any) -> httpx.Response:
    browser.get("/login")
    return browser.submit("/login/passkey", credential=passkey.get(page_options(browser.page.text), **changes))
