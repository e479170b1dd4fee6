"""A player's browser, and the records of providers, for tests of sign-in with other providers."""

import itertools
import re
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.kit.browser import Forms
from tests.kit.builders import PASSWORD
from tests.kit.oauth import Browser, new_browser
from tests.kit.server import Server
from tests.upstream.stand_ins import CLIENT_ID, SECRET, CodeProvider, SteamStandIn

_numbers = itertools.count(1)


def add_provider(server: Server, stand_in: CodeProvider | SteamStandIn, kind: str = "oidc", **fields: Any) -> str:
    """Adds a record for the stand-in and returns its id."""
    provider_id = f"{kind}-{next(_numbers)}"
    record: dict[str, Any] = {"id": provider_id, "kind": kind, "name": "Elsewhere"}
    if kind == "steam":
        record |= {"issuer": f"{stand_in.url}/openid"}
    else:
        record |= {"client_id": CLIENT_ID, "client_secret": SECRET}
    if kind == "oidc":
        record |= {"issuer": stand_in.url}
    if kind == "oauth2":
        record |= {
            "authorization_url": f"{stand_in.url}/authorize",
            "token_url": f"{stand_in.url}/token",
            "userinfo_url": f"{stand_in.url}/api/me",
            "claims": {"name": "username", "email_verified": "verified"},
        }
    server.apply({"identity_providers": [record | fields]})
    return provider_id


def player(server: Server, **fields: Any) -> Browser:
    """A browser of a new user, who is not signed in."""
    return new_browser(server, **fields)


def go(browser: Browser, url: str) -> httpx.Response:
    """Opens a page at the provider or here, without following redirects."""
    return browser.http.get(url)


def to_provider(browser: Browser, provider_id: str, next_path: str = "") -> str:
    """Presses "Continue with …" and returns the address at the provider."""
    answer = browser.http.get(f"/login/upstream/{provider_id}", params={"next": next_path} if next_path else None)
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def callback_of(browser: Browser, provider_id: str, next_path: str = "") -> str:
    """Signs in at the provider and returns the address with its answer, which the browser has not opened yet."""
    answer = go(browser, to_provider(browser, provider_id, next_path))
    assert answer.status_code in (302, 303), answer.text
    return answer.headers["Location"]


def sign_in(browser: Browser, provider_id: str, next_path: str = "") -> httpx.Response:
    """Signs in with a provider and returns the answer of the callback."""
    return go(browser, callback_of(browser, provider_id, next_path))


def follow(browser: Browser, answer: httpx.Response) -> httpx.Response:
    """Follows redirects within the service."""
    while answer.status_code in (302, 303):
        location = answer.headers["Location"]
        if urlsplit(location).netloc and not location.startswith(browser.server.base_url):
            return answer
        answer = browser.http.get(location)
    return answer


def link(browser: Browser, provider_id: str) -> None:
    """Links the identity at the provider with the account of the browser's user."""
    assert follow(browser, sign_in(browser, provider_id)).status_code == 200
    answer = press(browser, "/login?next=/login/identity/link", "/login", login=browser.login, password=PASSWORD)
    assert answer.headers.get("Location") == "/login/identity/link", answer.text
    answer = press(browser, "/login/identity/link", "/login/identity/link")
    assert answer.headers["Location"] == "/account?done=identity-linked#identities", answer.text


def start_link(browser: Browser, provider_id: str, **fields: str) -> Any:
    page = browser.http.get("/account").text
    csrf = re.findall(r'name="csrf" value="([^"]*)"', page)[0]
    return browser.http.post("/account/identities/link", data={"csrf": csrf, "provider": provider_id, **fields})


def press(browser: Browser, path: str, action: str, /, number: int = 0, **fields: str) -> httpx.Response:
    """Opens a page and submits its form with this action (if there are several, the one with this number)."""
    forms = Forms(browser.http.get(path).text).by_action
    return browser.http.post(action, data=forms[action][number] | fields)


def is_signed_in(browser: Browser) -> bool:
    return browser.http.get("/account/history").status_code == 200


def sign_out(browser: Browser) -> None:
    browser.http.cookies.clear()


def failure(server: Server, provider_id: str) -> str:
    """Returns the reason of the last failed sign-in with this provider."""
    events = [event for event in server.log_events("upstream.sign_in_failed") if event["provider"] == provider_id]
    return str(events[-1]["reason"])


def assert_refused(browser: Browser, answer: httpx.Response) -> None:
    assert answer.status_code in (401, 403), answer.text
    assert 'role="alert"' in answer.text
    assert not is_signed_in(browser)
