"""The response mode form_post, and authorization requests by POST."""

import html
import re
from urllib.parse import urlencode

import httpx
import pytest

from tests.kit.builders import PASSWORD
from tests.kit.oauth import AUTHORIZE, Browser, Site, new_browser, new_site, query_of
from tests.kit.server import Server


def fields_of(page: httpx.Response) -> dict[str, str]:
    """Returns the fields of the form that the page posts to the client."""
    assert page.status_code == 200
    assert "Location" not in page.headers
    form = re.search(r'<form id="form-post"[^>]*>(.*?)</form>', page.text, re.DOTALL)
    assert form, page.text
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form[1])
    return {name: html.unescape(value) for name, value in fields}


def test_page_may_post_to_the_client_and_is_not_stored(oidc: Site, browser: Browser) -> None:
    state = "ä \"&<>' +%"
    page = browser.authorize(oidc, response_mode="form_post", state=state)
    assert fields_of(page).keys() == {"code", "state", "iss"}
    assert (fields_of(page)["state"], fields_of(page)["iss"]) == (state, oidc.server.base_url)
    assert f'action="{oidc.redirect_uri}"' in page.text
    policy = page.headers["Content-Security-Policy"]
    assert "form-action 'self' https://game.example.com" in policy
    assert "script-src 'self'" in policy
    assert page.headers["Cache-Control"] == "no-store"
    assert oidc.redeem(fields_of(page)["code"]).status_code == 200


def test_code_is_issued_after_the_sign_in_and_only_once(server: Server, oidc: Site) -> None:
    browser = new_browser(server)
    page = browser.authorize(oidc, response_mode="form_post")
    answer = browser.submit(page, {"login": browser.login, "password": PASSWORD}, form=0)
    path = answer.headers["Location"]
    assert path.startswith(f"{AUTHORIZE}/")
    assert oidc.redeem(fields_of(browser.http.get(path))["code"]).status_code == 200
    assert browser.http.get(path).status_code == 400


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_consent_is_answered_by_a_form(server: Server, decision: str) -> None:
    site = new_site(server, profile="oidc", consent=True)
    browser = new_browser(server).sign_in()
    page = browser.authorize(site, response_mode="form_post")
    forms = re.findall(r'name="decision" value="(\w+)"', page.text)
    fields = fields_of(browser.submit(page, {"decision": decision}, form=forms.index(decision)))
    assert fields["state"] == "s-1"
    assert ("code" in fields) == (decision == "allow")
    assert fields.get("error") == (None if decision == "allow" else "access_denied")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"scope": "email"}, "invalid_scope"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"prompt": "none", "max_age": "0"}, "login_required"),
    ],
)
def test_errors_are_sent_by_a_form(oidc: Site, browser: Browser, changes: dict[str, str], error: str) -> None:
    fields = fields_of(browser.authorize(oidc, response_mode="form_post", **changes))
    assert (fields["error"], fields["state"]) == (error, "s-1")


@pytest.mark.parametrize("state", [b"\xff", b"a\r\nb"])
def test_state_that_a_form_would_change_is_refused(oidc: Site, browser: Browser, state: bytes) -> None:
    query = urlencode({**oidc.query(response_mode="form_post"), "state": state})
    fields = fields_of(browser.http.get(f"{AUTHORIZE}?{query}"))
    assert fields["error"] == "invalid_request"
    assert "code" not in fields


def test_strict_client_has_no_form_post(site: Site, browser: Browser) -> None:
    assert query_of(browser.authorize(site, response_mode="form_post"))["error"] == "invalid_request"


def test_request_by_post_is_redirected_to_get(oidc: Site, browser: Browser) -> None:
    answer = browser.http.post(
        AUTHORIZE, data=oidc.query(state="ä +&="), headers={"Origin": "https://game.example.com"}
    )
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith(f"{AUTHORIZE}?")
    assert query_of(browser.http.get(answer.headers["Location"]))["state"] == "ä +&="


@pytest.mark.parametrize(
    ("content", "content_type", "status"),
    [(b"{}", "application/json", 415), (b"a=%zz", "application/x-www-form-urlencoded", 400)],
)
def test_other_bodies_are_refused(browser: Browser, content: bytes, content_type: str, status: int) -> None:
    answer = browser.http.post(AUTHORIZE, content=content, headers={"Content-Type": content_type})
    assert answer.status_code == status
