"""Each change of an account that is signalled, end to end: by push and by poll, in order, with the right subject."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.browser import Browser as PageBrowser
from tests.kit.browser import query
from tests.kit.builders import PASSWORD
from tests.kit.oauth import ACR_MFA, ACR_PASSWORD, Browser, new_browser
from tests.kit.passkey_sign_in import new_passkey, register
from tests.kit.second_factors import enrol
from tests.kit.server import Server
from tests.kit.signals import event_of, names_of
from tests.ssf.conftest import BothReceivers

NEW_PASSWORD = "violet tractor sings quietly"


def user_id_of(server: Server, login: str) -> str:
    (row,) = query(server, "SELECT user_id FROM users WHERE login = $1", login)
    return str(row["user_id"])


def account_page(server: Server, login: str) -> PageBrowser:
    page = PageBrowser(server)
    assert page.sign_in(login).status_code == 303
    page.open_account()
    return page


def sign_out(server: Server, browser: Browser) -> None:
    browser.submit(browser.http.get("/account"), {}, form=0)


def change_password(server: Server, browser: Browser) -> None:
    with account_page(server, browser.login) as page:
        fields = {"current_password": PASSWORD, "new_password": NEW_PASSWORD, "repeat_password": NEW_PASSWORD}
        assert page.submit("/account/password", **fields).status_code == 303


def add_totp(server: Server, browser: Browser) -> None:
    with account_page(server, browser.login) as page:
        enrol(page)


def add_passkey(server: Server, browser: Browser) -> None:
    with account_page(server, browser.login) as page:
        answer = register(page, new_passkey(server))
        assert answer.status_code in (200, 303), answer.text


def ban_and_unban(server: Server, browser: Browser) -> None:
    server.sso("ban", "add", browser.login, "--reason", "cheating")
    (ban,) = query(server, "SELECT id FROM user_bans WHERE user_id = $1", user_id_of(server, browser.login))
    server.sso("ban", "lift", browser.login, ban["id"])


def disable_and_enable(server: Server, browser: Browser) -> None:
    server.sso("user", "disable", browser.login)
    server.sso("user", "enable", browser.login)


def delete_and_erase(server: Server, browser: Browser) -> None:
    server.sso("user", "delete", browser.login, "--now", "--yes")


CHANGES: list[tuple[Callable[[Server, Browser], None], list[str]]] = [
    (sign_out, ["session-revoked"]),
    (change_password, ["session-revoked", "credential-change"]),
    (add_totp, ["session-revoked", "credential-change", "credential-change"]),
    (ban_and_unban, ["session-revoked", "account-disabled", "account-enabled"]),
    (disable_and_enable, ["account-disabled", "session-revoked", "account-enabled"]),
    (delete_and_erase, ["session-revoked", "account-disabled", "account-purged"]),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_change_is_signalled(
    server: Server, both: BothReceivers, change: Callable[[Server, Browser], None], expected: list[str]
) -> None:
    browser = new_browser(server).sign_in()
    claims = both.client.site.claims(both.client.site.tokens(browser)["id_token"])
    user_id = user_id_of(server, browser.login)
    change(server, browser)
    events = both.about(user_id, len(expected))
    assert names_of(events) == expected
    user = {"format": "iss_sub", "iss": claims["iss"], "sub": claims["sub"]}
    session = {"format": "opaque", "id": claims["sid"]}
    one_session = {"format": "complex", "user": user, "session": session}
    assert [item["sub_id"] for item in events] == [one_session if change is sign_out else user] * len(events)
    for item in events:
        name, members = event_of(item)
        if name in ("session-revoked", "credential-change"):
            assert members["reason_admin"]["en"]
            assert members["event_timestamp"] == item["iat"]
    if change is add_totp:
        changes = [(event_of(item)[1]["credential_type"], event_of(item)[1]["change_type"]) for item in events[1:]]
        assert changes == [("app", "create"), ("recovery-codes", "create")]
        assert len({item["txn"] for item in events}) == 1
