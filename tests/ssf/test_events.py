"""Each change of an account that is signalled, end to end: by push and by poll, in order, with the right subject."""

import re
from collections.abc import Callable

import httpx
import pytest

from sso.db.cleanup import _DELETE_EXPIRED
from tests.admin.conftest import Administrator
from tests.kit.browser import AuthenticatorApp, query, user_id_of
from tests.kit.browser import Browser as PageBrowser
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.oauth import ACR_MFA, ACR_PASSWORD, REVOKE, Browser, new_browser
from tests.kit.passkey_sign_in import new_passkey, register
from tests.kit.second_factors import enrol
from tests.kit.server import Server
from tests.kit.signals import RISC, event_of, names_of, new_application, signal_client
from tests.ssf.conftest import BothReceivers

NEW_PASSWORD = "violet tractor sings quietly"


def account_page(server: Server, login: str) -> PageBrowser:
    page = PageBrowser(server)
    assert page.sign_in(login).status_code == 303
    page.open_account()
    return page


def sign_out(server: Server, browser: Browser, root: Administrator) -> None:
    browser.submit(browser.http.get("/account"), {}, form=0)


def change_password(server: Server, browser: Browser, root: Administrator) -> None:
    with account_page(server, browser.login) as page:
        fields = {"current_password": PASSWORD, "new_password": NEW_PASSWORD, "repeat_password": NEW_PASSWORD}
        assert page.submit("/account/password", **fields).status_code == 303


def add_totp(server: Server, browser: Browser, root: Administrator) -> None:
    with account_page(server, browser.login) as page:
        enrol(page)


def add_passkey(server: Server, browser: Browser, root: Administrator) -> None:
    with account_page(server, browser.login) as page:
        answer = register(page, new_passkey(server))
        assert answer.status_code in (200, 303), answer.text


def remove_factors(server: Server, browser: Browser, root: Administrator) -> None:
    add_totp(server, browser, root)
    server.sso("user", "reset-2fa", browser.login)


def end_sessions(server: Server, browser: Browser, root: Administrator) -> None:
    server.sso("user", "end-sessions", browser.login)


def ban_and_unban(server: Server, browser: Browser, root: Administrator) -> None:
    path = f"/users/{user_id_of(server, browser.login)}/bans"
    ban = root.request("POST", path, json={"scope": "all", "reason": "cheating"}).json()["data"]
    assert root.request("DELETE", f"{path}/{ban['id']}").status_code == 200


def disable_and_enable(server: Server, browser: Browser, root: Administrator) -> None:
    path = f"/users/{user_id_of(server, browser.login)}"
    for disabled in (True, False):
        assert root.request("PATCH", path, json={"disabled": disabled}).status_code == 200


def enable_while_banned(server: Server, browser: Browser, root: Administrator) -> None:
    """A user who is enabled and still banned cannot sign in."""
    user_id = user_id_of(server, browser.login)
    assert root.request("PATCH", f"/users/{user_id}", json={"disabled": True}).status_code == 200
    ban = root.request("POST", f"/users/{user_id}/bans", json={"scope": "all"}).json()["data"]
    assert root.request("PATCH", f"/users/{user_id}", json={"disabled": False}).status_code == 200
    assert root.request("DELETE", f"/users/{user_id}/bans/{ban['id']}").status_code == 200


def erase(server: Server, browser: Browser, root: Administrator) -> None:
    answer = root.request("DELETE", f"/users/{user_id_of(server, browser.login)}", params={"now": 1})
    assert answer.status_code == 200, answer.text


def merge_and_erase(server: Server, browser: Browser, root: Administrator) -> None:
    """Erases the account that the user was merged into."""
    into = user_id_of(server, new_browser(server).login)
    server.sso("user", "merge", user_id_of(server, browser.login), into, "--yes")
    answer = root.request("DELETE", f"/users/{into}", params={"now": 1})
    assert answer.status_code == 200, answer.text


Change = Callable[[Server, Browser, Administrator], None]
REVOKED, CREDENTIAL = "session-revoked", "credential-change"
DISABLED, ENABLED = "account-disabled", "account-enabled"
CHANGES: list[tuple[Change, list[str]]] = [
    (sign_out, [REVOKED]),
    (end_sessions, [REVOKED]),
    (change_password, [REVOKED, CREDENTIAL]),
    (add_totp, [REVOKED, CREDENTIAL, CREDENTIAL]),
    (remove_factors, [REVOKED, CREDENTIAL, CREDENTIAL, REVOKED, CREDENTIAL]),
    (add_passkey, [REVOKED, CREDENTIAL, CREDENTIAL]),
    (ban_and_unban, [REVOKED, DISABLED, ENABLED]),
    (disable_and_enable, [DISABLED, REVOKED, ENABLED]),
    (enable_while_banned, [DISABLED, REVOKED, REVOKED, DISABLED, ENABLED]),
    (erase, [REVOKED, DISABLED, "account-purged"]),
    (merge_and_erase, [REVOKED, "account-purged"]),
]
CREDENTIALS: dict[Change, list[tuple[str, str]]] = {
    change_password: [("password", "update")],
    add_totp: [("app", "create"), ("recovery-codes", "create")],
    remove_factors: [("app", "create"), ("recovery-codes", "create"), ("second-factors", "revoke")],
    add_passkey: [("fido2-platform", "create"), ("recovery-codes", "create")],
}


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_change_is_signalled(
    server: Server, root: Administrator, both: BothReceivers, change: Change, expected: list[str]
) -> None:
    browser = new_browser(server).sign_in()
    claims = both.client.site.claims(both.client.site.tokens(browser)["id_token"])
    user_id = user_id_of(server, browser.login)
    change(server, browser, root)
    events = both.about(user_id, len(expected))
    assert names_of(events) == expected
    user = {"format": "iss_sub", "iss": claims["iss"], "sub": claims["sub"]}
    one_session = {"format": "complex", "user": user, "session": {"format": "opaque", "id": claims["sid"]}}
    assert [item["sub_id"] for item in events] == [one_session if change is sign_out else user] * len(events)
    for item in events:
        name, members = event_of(item)
        if name in (REVOKED, CREDENTIAL):
            assert members["reason_admin"]["en"]
            assert members["event_timestamp"] == item["iat"]
    changed = [members for name, members in map(event_of, events) if name == CREDENTIAL]
    assert [(item["credential_type"], item["change_type"]) for item in changed] == CREDENTIALS.get(change, [])
    if change is add_totp:
        assert len({item["txn"] for item in events}) == 1


def test_user_whose_tokens_have_expired_is_still_known(
    server: Server, root: Administrator, both: BothReceivers
) -> None:
    """A site has a session of its own for longer than its tokens are valid."""
    browser = new_browser(server).sign_in()
    both.client.site.tokens(browser)
    user_id = user_id_of(server, browser.login)
    query(server, "UPDATE oauth_grants SET expires = now() - interval '1 second' WHERE user_id = $1", user_id)
    query(server, _DELETE_EXPIRED["oauth_grants"].sql)
    assert not query(server, "SELECT id FROM oauth_grants WHERE user_id = $1", user_id)
    disable_and_enable(server, browser, root)
    assert names_of(both.about(user_id, 3)) == [DISABLED, REVOKED, ENABLED]


def test_user_whose_tokens_were_revoked_is_still_known(
    server: Server, root: Administrator, both: BothReceivers
) -> None:
    """By the site in both ways, and by the service because a code was used twice."""
    site = both.client.site
    browsers = [new_browser(server).sign_in() for _ in range(3)]
    codes = [browser.code(site) for browser in browsers]
    tokens = [site.redeem(code).json()["refresh_token"] for code in codes]
    assert site.revoke(tokens[0]).status_code == 200
    form = {"token": tokens[1]}
    assert site.http.post(REVOKE, data=form, headers=site.basic()).status_code == 200
    assert site.redeem(codes[2]).status_code == 400
    for browser in browsers:
        user_id = user_id_of(server, browser.login)
        assert not query(server, "SELECT id FROM oauth_grants WHERE user_id = $1", user_id)
        disable_and_enable(server, browser, root)
        assert names_of(both.about(user_id, 3)) == [DISABLED, REVOKED, ENABLED]


@pytest.mark.parametrize("change", [{"disabled": True}, {"redirect_uris": ["https://moved.example.com/cb"]}])
def test_users_are_still_known_after_a_change_of_the_client_has_revoked_its_tokens(
    server: Server, root: Administrator, change: dict[str, object]
) -> None:
    client = signal_client(server)
    stream = client.add_stream()
    browser = new_browser(server).sign_in()
    client.site.tokens(browser)
    user_id, path = user_id_of(server, browser.login), f"/clients/{client.site.client_id}"
    assert root.request("PATCH", path, json={"redirect_hosts": [], **change}).status_code == 200
    assert not query(server, "SELECT id FROM oauth_grants WHERE user_id = $1", user_id)
    assert root.request("PATCH", path, json={"disabled": False}).status_code == 200
    assert root.request("PATCH", f"/users/{user_id}", json={"disabled": True}).status_code == 200
    client._headers.clear()
    assert names_of(client.take(stream)) == [DISABLED, REVOKED]


def test_new_address_is_told_to_clients_that_may_read_it(
    server: Server, root: Administrator, both: BothReceivers
) -> None:
    """Another client, which knows the user without the address, gets nothing about it."""
    other = signal_client(server)
    stream = other.add_stream()
    browser = new_browser(server).sign_in()
    other.site.tokens(browser)
    both.client.site.tokens(browser, scope="openid email")
    user_id, new = user_id_of(server, browser.login), f"new-{browser.login}"
    assert root.request("PATCH", f"/users/{user_id}", json={"login": new}).status_code == 200
    (event,) = both.about(browser.login, 1)
    assert event["sub_id"] == {"format": "email", "email": browser.login}
    assert event["events"] == {f"{RISC}identifier-changed": {"new-value": new}}
    assert root.request("PATCH", f"/users/{user_id}", json={"disabled": True}).status_code == 200
    assert [name for name in names_of(other.take(stream)) if name != REVOKED] == [DISABLED]


def test_step_up_changes_the_assurance_of_the_session(server: Server, both: BothReceivers) -> None:
    browser, app = new_browser(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)

    def sign_in(page: httpx.Response) -> httpx.Response:
        answer = browser.submit(page, {"login": browser.login, "password": PASSWORD}, form=0)
        return browser.submit(browser.http.get(answer.headers["Location"]), {"otp": app.code()}, form=0)

    assert sign_in(browser.http.get("/login")).status_code == 303
    site, user_id = both.client.site, user_id_of(server, browser.login)
    query(server, "UPDATE browser_sessions SET auth = 'login' WHERE user_id = $1", user_id)
    sid = site.claims(site.tokens(browser)["id_token"])["sid"]
    assert sign_in(browser.authorize(site, acr_values=ACR_MFA)).status_code == 303
    (event,) = both.about(user_id, 1)
    name, members = event_of(event)
    assert name == "assurance-level-change"
    levels = (members["namespace"], members["previous_level"], members["current_level"], members["change_direction"])
    assert levels == ("urn:sso:acr", ACR_PASSWORD, ACR_MFA, "increase")
    assert event["sub_id"]["session"]["id"] == sid


def test_other_sessions_are_named_when_one_is_kept(server: Server, both: BothReceivers) -> None:
    first, second = new_browser(server).sign_in(), None
    second = Browser(server, first.login).sign_in()
    site, user_id = both.client.site, user_id_of(server, first.login)
    ended = site.claims(site.tokens(first)["id_token"])["sid"]
    site.tokens(second)
    assert second.submit(second.http.get("/account"), {}, form=_form_of(second, "end-others")).status_code == 303
    (event,) = both.about(user_id, 1)
    assert event["sub_id"]["session"]["id"] == ended


def test_ban_at_an_application_is_told_to_its_clients(server: Server, root: Administrator, both: BothReceivers) -> None:
    application_id = new_application(server)
    there = signal_client(server, application_id)
    stream = there.add_stream()
    browser = new_browser(server).sign_in()
    there.site.tokens(browser)
    both.client.site.tokens(browser)
    user_id = user_id_of(server, browser.login)
    body = {"scope": {"application_id": application_id}}
    assert root.request("POST", f"/users/{user_id}/bans", json=body).status_code == 201
    assert names_of(there.take(stream)) == [REVOKED, DISABLED]
    sign_out(server, browser, root)
    assert names_of(both.about(user_id, 1)) == [REVOKED]


def test_removed_site_gets_one_last_signal(server: Server, root: Administrator, both: BothReceivers) -> None:
    browser = new_browser(server).sign_in()
    both.client.site.tokens(browser)
    user_id = user_id_of(server, browser.login)
    with account_page(server, browser.login) as page:
        fields = {"client_id": both.client.site.client_id}
        assert page.submit("/account/sites/remove", **fields).status_code == 303
    assert root.request("PATCH", f"/users/{user_id}", json={"disabled": True}).status_code == 200
    marker = new_browser(server).sign_in()
    both.client.site.tokens(marker)
    sign_out(server, marker, root)
    both.about(user_id_of(server, marker.login), 1)
    assert names_of(both.about(user_id, 1)) == [REVOKED]


def _form_of(browser: Browser, action: str) -> int:
    """Returns the position of a form on the account page."""
    actions = re.findall(r'<form[^>]*action="([^"]*)"', browser.http.get("/account").text)
    return next(n for n, found in enumerate(actions) if action in found)
