"""Which clients get signals: those that know the user and may still have streams."""

from typing import Any

import httpx
import pytest

from sso.ssf.delivery_store import SignalDeliveries
from tests.admin.conftest import Administrator
from tests.kit.browser import AuthenticatorApp, query, user_id_of
from tests.kit.browser import Browser as PageBrowser
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.oauth import ACR_MFA, TOKEN, Browser, new_browser, new_site
from tests.kit.server import Server, until
from tests.kit.signals import (
    PUSH,
    SITE_GRANTS,
    SignalClient,
    names_of,
    new_application,
    push_receiver,
    signal_client,
    wait_for_tokens,
)

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
NOW = {"returnImmediately": True}


def service_with_exchanged_token(server: Server, browser: Browser, **changes: str | None) -> tuple[SignalClient, str]:
    """Returns a service that has exchanged a token of the user at another site, and a stream of it."""
    application_id = new_application(server)
    site = new_site(server, profile="oidc", application_id=application_id)
    service = signal_client(server, application_id, token_exchange=True, resource_server=True)
    stream = service.add_stream()
    token = site.redeem(browser.code(site, **changes), headers=site.basic()).json()["access_token"]
    form = {"grant_type": EXCHANGE, "subject_token": token, "subject_token_type": ACCESS_TOKEN}
    assert service.http.post(TOKEN, data=form, headers=service.site.basic()).status_code == 200
    return service, stream


def test_service_that_only_exchanges_tokens_is_not_told_about_a_step_up(server: Server) -> None:
    browser, app = new_browser(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)

    def sign_in(page: httpx.Response) -> httpx.Response:
        answer = browser.submit(page, {"login": browser.login, "password": PASSWORD}, form=0)
        return browser.submit(browser.http.get(answer.headers["Location"]), {"otp": app.code()}, form=0)

    assert sign_in(browser.http.get("/login")).status_code == 303
    query(server, "UPDATE browser_sessions SET auth = 'login' WHERE user_id = $1", user_id_of(server, browser.login))
    service, stream = service_with_exchanged_token(server, browser)
    assert sign_in(browser.authorize(service.site, acr_values=ACR_MFA)).status_code == 303
    assert service.take(stream, **NOW) == []


def test_service_is_not_told_about_sessions_that_it_has_only_exchanged_tokens_of(server: Server) -> None:
    browser = new_browser(server).sign_in()
    service, stream = service_with_exchanged_token(server, browser)
    service.site.tokens(Browser(server, browser.login).sign_in())
    browser.submit(browser.http.get("/account"), {}, form=0)
    assert service.take(stream, **NOW) == []


def test_exchanged_token_does_not_let_a_service_know_the_address(server: Server, root: Administrator) -> None:
    browser = new_browser(server).sign_in()
    service, stream = service_with_exchanged_token(server, browser, scope="openid email")
    service.site.tokens(browser)
    user_id = user_id_of(server, browser.login)
    assert root.request("PATCH", f"/users/{user_id}", json={"login": f"new-{browser.login}"}).status_code == 200
    assert "identifier-changed" not in names_of(service.take(stream, **NOW))


def test_service_that_only_exchanges_tokens_cannot_add_the_user(server: Server, root: Administrator) -> None:
    browser = new_browser(server).sign_in()
    service, stream = service_with_exchanged_token(server, browser)
    user_id = user_id_of(server, browser.login)
    subject = {"format": "iss_sub", "iss": server.base_url, "sub": user_id}
    for path in ("subjects:remove", "subjects:add"):
        assert service.call("POST", path, json={"stream_id": stream, "subject": subject}).is_success
    assert root.request("PATCH", f"/users/{user_id}", json={"disabled": True}).status_code == 200
    assert service.take(stream, **NOW) == []


RIGHTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "grant type": ({"grant_types": SITE_GRANTS[:2]}, {"grant_types": SITE_GRANTS}),
    "unbound tokens": ({"dpop_bound_access_tokens": True}, {"dpop_bound_access_tokens": False}),
}


@pytest.mark.parametrize("right", [*RIGHTS, "application"])
def test_nothing_is_pushed_to_a_client_that_may_no_longer_have_streams(
    server: Server, root: Administrator, right: str
) -> None:
    """Neither what waits nor what happens afterwards. What has waited is pushed when the client has the right again."""
    client = signal_client(server)
    stored = "SELECT application_id FROM oauth_clients WHERE client_id = $1"
    application_id = query(server, stored, client.site.client_id)[0]["application_id"]

    def set_right(has_right: bool) -> None:
        if right == "application":
            sql = "UPDATE applications SET removed = $2 WHERE application_id = $1"
            query(server, sql, application_id, not has_right)
        else:
            path = f"/clients/{client.site.client_id}"
            assert root.request("PATCH", path, json=RIGHTS[right][has_right]).status_code == 200

    def set_disabled(user_id: str, disabled: bool) -> None:
        query(server, "UPDATE signal_streams SET next_try = now() WHERE stream_id = $1", stream)
        assert root.request("PATCH", f"/users/{user_id}", json={"disabled": disabled}).status_code == 200

    browsers = [new_browser(server).sign_in() for _ in range(2)]
    for browser in browsers:
        client.site.tokens(browser)
    first, second = (user_id_of(server, browser.login) for browser in browsers)
    with push_receiver() as receiver:
        receiver.status = 500
        stream = client.add_stream(delivery={"method": PUSH, "endpoint_url": receiver.url})
        set_disabled(first, True)
        tries = "SELECT tries FROM signal_streams WHERE stream_id = $1"
        assert until(lambda: query(server, tries, stream)[0]["tries"])
        set_right(False)
        receiver.status = 202
        set_disabled(second, True)
        claimed = server.run_with_services(
            lambda services: SignalDeliveries(services.database, services.keyring).claim()
        )
        assert claimed is None
        assert receiver.tokens == []
        set_right(True)
        set_disabled(first, False)
        claims = [client.claims(token) for token in wait_for_tokens(receiver, 3)]
        assert {item["sub_id"]["sub"] for item in claims} == {first}


def test_user_who_removes_the_site_stays_excluded(server: Server, root: Administrator) -> None:
    """Also when the user comes back."""
    client, browser = signal_client(server), new_browser(server).sign_in()
    stream, user_id = client.add_stream(), user_id_of(server, browser.login)
    client.site.tokens(browser)
    subject = {"format": "iss_sub", "iss": server.base_url, "sub": user_id}
    assert client.call("POST", "subjects:remove", json={"stream_id": stream, "subject": subject}).is_success
    with PageBrowser(server) as page:
        page.sign_in(browser.login)
        page.open_account()
        assert page.submit("/account/sites/remove", client_id=client.site.client_id).status_code == 303
    client.site.tokens(browser)
    assert root.request("PATCH", f"/users/{user_id}", json={"disabled": True}).status_code == 200
    assert client.take(stream, **NOW) == []
