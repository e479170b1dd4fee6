"""GET /proxy/oauth/authorize: validation of the request, and the redirect to the client."""

import html
import socket
from collections.abc import Iterator
from itertools import cycle, product
from urllib.parse import quote, urlencode

import httpx
import pytest

from tests.kit.oauth import AUTHORIZE, Browser, Site, new_browser, new_site, next_path_of, pkce, query_of
from tests.kit.postgres import Postgres
from tests.kit.redirect_uris import REFUSED
from tests.kit.server import QUICK, Server, running, until

# The test server has no TLS, so it accepts http as well.
ACCEPTED_WITHOUT_TLS = {"http://game.example.com/cb"}


def assert_error_page(response: httpx.Response) -> None:
    """Asserts that the response is an error page: no redirect, and no form for a password."""
    assert response.status_code == 400, response.headers
    assert "Location" not in response.headers
    assert response.headers["Content-Type"].startswith("text/html")
    assert "password" not in response.text.partition("<footer")[0]
    assert response.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


@pytest.fixture(scope="module")
def anonymous(server: Server) -> Browser:
    return new_browser(server)


def test_bad_redirect_uri_never_redirects(site: Site, browser: Browser, anonymous: Browser) -> None:
    """With and without a session and a prompt by turns; tests/oauth/test_redirect_uris.py looks at each address."""
    turns = cycle(product((browser, anonymous), ({}, {"prompt": "none"})))
    for uri, (user, prompt) in zip(REFUSED, turns, strict=False):
        if uri not in ACCEPTED_WITHOUT_TLS and len(uri) < 9000:
            query = {**site.query(redirect_uri=None), "redirect_uri": uri} | prompt
            response = user.http.get(f"{AUTHORIZE}?{urlencode(query)}")
            assert response.status_code == 400, uri
            assert_error_page(response)


def test_very_long_redirect_uri_is_refused(site: Site, browser: Browser) -> None:
    query = site.query(redirect_uri="https://game.example.com/" + "a" * 60_000)
    try:
        response = browser.http.get(f"{AUTHORIZE}?{urlencode(query)}")
    except httpx.TransportError:
        return  # the server closed the connection
    assert 400 <= response.status_code < 500
    assert "Location" not in response.headers


@pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
def test_missing_or_repeated_client_id_or_redirect_uri_never_redirects(site: Site, browser: Browser, name: str) -> None:
    query = site.query()
    assert_error_page(browser.authorize(site, **{name: None}))
    assert_error_page(browser.authorize(site, **{name: ""}))
    assert_error_page(browser.http.get(f"{AUTHORIZE}?{urlencode(query)}&{name}={quote(query[name])}"))
    assert_error_page(browser.http.get(f"{AUTHORIZE}?{urlencode(query)}&{name}="))


@pytest.mark.parametrize("client_id", ["unknown", "a" * 65, "a\x00b", "é", "' OR 1=1", "<script>", "%"])
def test_unknown_client_id_never_redirects(site: Site, browser: Browser, client_id: str) -> None:
    response = browser.authorize(site, client_id=client_id)
    assert_error_page(response)
    assert "<script>" not in response.text


def test_redirect_uri_of_another_client_never_redirects(site: Site, browser: Browser, server: Server) -> None:
    other = new_site(server, redirect_uri="https://b.example.com/cb")
    assert_error_page(browser.authorize(other, redirect_uri=site.redirect_uri))


def test_disabled_client_never_redirects(server: Server, browser: Browser) -> None:
    site = new_site(server)
    assert browser.code(site)
    server.apply({"clients": [{"client_id": site.client_id, "disabled": True}]})
    assert_error_page(browser.authorize(site))


def test_too_many_parameters_are_refused(site: Site, browser: Browser) -> None:
    assert_error_page(browser.http.get(f"{AUTHORIZE}?{urlencode(site.query())}" + "&x=1" * 200))


def test_answer_to_an_oidc_client_names_the_issuer(oidc: Site, browser: Browser) -> None:
    for answer in (browser.authorize(oidc), browser.authorize(oidc, response_type="token")):
        assert query_of(answer)["iss"] == oidc.http.get("/.well-known/openid-configuration").json()["issuer"]


def test_success_redirect_has_only_code_and_state(site: Site, browser: Browser) -> None:
    response = browser.authorize(site)
    assert response.status_code == 302
    assert response.headers["Location"].startswith(site.redirect_uri + "?code=")
    assert set(query_of(response)) == {"code", "state"}
    assert query_of(response)["state"] == "s-1"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert len(query_of(response)["code"]) >= 43


def test_redirect_has_no_state_if_the_request_had_none(site: Site, browser: Browser) -> None:
    assert set(query_of(browser.authorize(site, state=None))) == {"code"}
    assert "state" not in query_of(browser.authorize(site, state=None, scope="x"))


@pytest.mark.parametrize("state", ['"><script>', "a" * 4096, "🎮 é", "\r\nSet-Cookie: a=b", "a b+c&d=e%41", "\x00"])
def test_state_is_returned_unchanged(site: Site, browser: Browser, state: str) -> None:
    response = browser.authorize(site, state=state)
    assert query_of(response)["state"] == state
    assert "Set-Cookie" not in response.headers


def test_state_that_is_not_utf8_is_returned_unchanged(site: Site, browser: Browser) -> None:
    response = browser.http.get(f"{AUTHORIZE}?{urlencode(site.query(state=None))}&state=%ff%fe")
    assert response.headers["Location"].endswith("&state=%FF%FE")


def test_query_of_the_redirect_uri_is_kept_before_the_added_parameters(server: Server, browser: Browser) -> None:
    site = new_site(server, redirect_uri="https://game.example.com/cb?b=2&a=1")
    assert browser.authorize(site).headers["Location"].startswith("https://game.example.com/cb?b=2&a=1&code=")


def test_host_is_compared_without_case_and_used_unchanged(site: Site, browser: Browser) -> None:
    response = browser.authorize(site, redirect_uri="https://GAME.EXAMPLE.COM/CB")
    assert response.headers["Location"].startswith("https://GAME.EXAMPLE.COM/CB?code=")


def assert_error_redirect(response: httpx.Response, error: str, state: str = "s-1") -> None:
    assert response.status_code == 302, response.text
    parameters = query_of(response)
    assert set(parameters) == {"error", "error_description", "state"}
    assert parameters["error"] == error, parameters
    assert parameters["state"] == state
    assert response.headers["Location"].startswith("https://game.example.com/cb?")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": "CODE"}, "unsupported_response_type"),
        ({"response_mode": None}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "form_post"}, "invalid_request"),
        ({"response_mode": "query.jwt"}, "invalid_request"),
        ({"scope": None}, "invalid_request"),
        ({"scope": ""}, "invalid_scope"),
        ({"scope": "email"}, "invalid_scope"),
        ({"scope": "openid admin"}, "invalid_scope"),
        ({"scope": "openid\temail"}, "invalid_scope"),
        ({"scope": "OPENID"}, "invalid_scope"),
        ({"nonce": None}, "invalid_request"),
        ({"nonce": ""}, "invalid_request"),
        ({"nonce": "n" * 2000}, "invalid_request"),
        ({"nonce": "a\x00b"}, "invalid_request"),
        ({"nonce": "a\x1fb"}, "invalid_request"),
        ({"nonce": "🎮" * 257}, "invalid_request"),
        ({"prompt": "maybe"}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"max_age": "-1"}, "invalid_request"),
        ({"max_age": "soon"}, "invalid_request"),
        ({"max_age": "1e3"}, "invalid_request"),
        ({"code_challenge": "x" * 43}, "invalid_request"),
        ({"code_challenge": "x" * 43, "code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": "x" * 42, "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "x" * 42 + "=", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge_method": "S256"}, "invalid_request"),
        ({"id_token_hint": "garbage"}, "invalid_request"),
        ({"request": "e30"}, "request_not_supported"),
        ({"request_uri": "https://evil.com/"}, "request_uri_not_supported"),
    ],
)
def test_invalid_request_is_reported_to_the_client_by_a_redirect(
    site: Site, browser: Browser, anonymous: Browser, changes: dict[str, str | None], error: str
) -> None:
    assert_error_redirect(browser.authorize(site, **changes), error)
    assert_error_redirect(anonymous.authorize(site, **changes), error)


@pytest.mark.parametrize("name", ["response_type", "response_mode", "scope", "nonce", "state", "prompt", "acr_values"])
def test_repeated_parameter_is_refused(site: Site, browser: Browser, name: str) -> None:
    query = f"{AUTHORIZE}?{urlencode(site.query(prompt='login', acr_values='x'))}&{name}=x"
    assert query_of(browser.http.get(query))["error"] == "invalid_request"


def test_too_long_state_is_refused(site: Site, browser: Browser) -> None:
    assert_error_redirect(browser.authorize(site, state="a" * 4097), "invalid_request", "a" * 4097)


def test_unknown_parameters_are_ignored(site: Site, browser: Browser) -> None:
    assert browser.code(site, extra="foobar", display="popup", ui_locales="se", acr_values="x", claims="{}")


def test_repeated_scopes_and_their_order_do_not_matter(site: Site, browser: Browser) -> None:
    data = site.tokens(browser, scope="profile  offline_access openid openid email")
    assert site.claims(data["refresh_token"])["scopes"] == "openid offline_access email profile"


def test_oidc_client_may_omit_response_mode_and_nonce(oidc: Site, browser: Browser) -> None:
    assert browser.code(oidc, response_mode=None, nonce=None)
    assert query_of(browser.authorize(oidc, response_mode="fragment"))["error"] == "invalid_request"


def test_public_clients_must_use_pkce(server: Server, browser: Browser) -> None:
    site = new_site(server, public=True, profile="oidc")
    assert query_of(browser.authorize(site))["error"] == "invalid_request"
    assert browser.code(site, code_challenge=pkce()[1], code_challenge_method="S256")


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "PATCH"])
def test_only_get_and_post_are_allowed(site: Site, browser: Browser, method: str) -> None:
    response = browser.http.request(method, f"{AUTHORIZE}?{urlencode(site.query())}")
    assert response.status_code == 405
    assert set(response.headers["Allow"].split(", ")) == {"GET", "POST", "OPTIONS"}
    assert "Location" not in response.headers


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "PATCH"])
def test_pending_authorization_allows_only_get_and_post(browser: Browser, method: str) -> None:
    response = browser.http.request(method, f"{AUTHORIZE}/{'x' * 43}")
    assert response.status_code == 405
    assert set(response.headers["Allow"].split(", ")) == {"GET", "POST", "OPTIONS"}


@pytest.mark.parametrize("nonce", ["🎮" * 256, '"' * 1024, "n" * 1024])
def test_longest_id_token_is_accepted_as_id_token_hint(server: Server, oidc: Site, nonce: str) -> None:
    """The nonce, the nickname and the login have their maximum length."""
    login = f"{'𠀀' * 56}{len(nonce)}{ord(nonce[0]):x}@{'.'.join(['𠀀' * 45] * 4)}.de"
    browser = new_browser(server, login=login, nick="🎮" * 1024)
    browser.sign_in()
    hint = oidc.tokens(browser, nonce=nonce, scope="openid email profile")["id_token"]
    assert oidc.claims(hint)["nickname"] == "🎮" * 1024
    assert oidc.claims(hint)["nonce"] == nonce
    assert len(hint) > 8192 * 0.9
    assert browser.code(oidc, id_token_hint=hint, prompt="none")
    response = browser.http.get("/proxy/oauth/logout", params={"id_token_hint": hint})
    assert "You are signed out" in response.text


def test_parameters_are_never_shown_unescaped(site: Site, browser: Browser) -> None:
    response = browser.authorize(site, client_id='"><img src=x onerror=alert(1)>', state="<script>")
    assert "<img" not in response.text
    assert "onerror" not in response.text
    assert "default-src 'none'; script-src 'self';" in response.headers["Content-Security-Policy"]  # nothing inline


def test_forwarded_host_headers_do_not_change_urls(site: Site, anonymous: Browser, server: Server) -> None:
    headers = {"Host": "localhost", "X-Forwarded-Host": "evil.com", "X-Forwarded-Proto": "https"}
    response = anonymous.http.get(f"{AUTHORIZE}?{urlencode(site.query())}", headers=headers)
    assert next_path_of(response).startswith("/proxy/oauth/authorize/")
    assert "evil" not in response.text
    config = anonymous.http.get("/.well-known/openid-configuration", headers=headers)
    assert "evil" not in config.text
    assert config.json()["issuer"] == server.base_url


@pytest.fixture(scope="module")
def behind_tls(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with an https base URL, connected like a reverse proxy."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_BIND": address,
        "SSO_BASE_URL": "https://sso.example.com",
    }
    with running(tmp_path_factory.mktemp("tls"), **settings) as server:
        part = {"client_id": "shop", "client_secret": "s" * 20, "redirect_hosts": ["game.example.com", "localhost"]}
        server.settings["SSO_BIND"] = address
        server.apply({"clients": [part]})
        with httpx.Client(base_url=f"http://{address}", timeout=60) as client:
            yield client


def test_service_with_tls_allows_http_redirects_to_loopback_only(behind_tls: httpx.Client) -> None:
    site = {"client_id": "shop", "response_type": "code", "response_mode": "query", "scope": "openid", "nonce": "n"}
    for uri, status in (
        ("http://game.example.com/cb", 400),
        ("https://game.example.com/cb", 200),
        ("http://localhost:5000/cb", 200),
    ):
        assert behind_tls.get(AUTHORIZE, params={**site, "redirect_uri": uri}).status_code == status
    assert behind_tls.get("/.well-known/openid-configuration").json()["issuer"] == "https://sso.example.com"
    page = behind_tls.get("/login")
    cookie = page.headers["Set-Cookie"]
    assert cookie.startswith("__Host-")
    for word in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert word in cookie


REASONS = [
    ({"client_id": None}, "client_id is missing, repeated or not ASCII"),
    ({"client_id": "no-such-client"}, "there is no client with this client_id"),
    ({"redirect_uri": None}, "redirect_uri is missing, repeated or not ASCII"),
    ({"redirect_uri": "game.example.com"}, "redirect_uri: expected an absolute http or https URI"),
    ({"redirect_uri": "https://game.example.com/#x"}, "redirect_uri: expected an absolute http or https URI"),
    ({"redirect_uri": "https://game.example.com/cb?code=1"}, "its query must not have code, state, error"),
]


@pytest.mark.parametrize(("changes", "reason"), REASONS)
def test_refused_authorization_logs_its_reason_under_the_reference_on_the_page(
    server: Server, site: Site, anonymous: Browser, changes: dict[str, str | None], reason: str
) -> None:
    """The base URL of the test server is a loopback address, so the page shows the reason as well."""
    response = anonymous.authorize(site, **changes)
    assert_error_page(response)
    assert reason in html.unescape(response.text)
    reference = response.headers["X-Request-Id"]
    assert reference in response.text
    (event,) = until(lambda: [e for e in server.log_events("request.refused") if e["request"] == reference])
    assert reason in event["reason"]


def test_page_names_a_redirect_uri_that_is_not_registered_to_the_developer(
    server: Server, site: Site, anonymous: Browser
) -> None:
    uri = f"https://elsewhere.example.com/cb?a='b'&c={'d' * 300}"
    response = anonymous.authorize(site, redirect_uri=uri)
    text = html.unescape(response.text)
    assert_error_page(response)
    assert "This site is not set up correctly" in text
    assert 'href="/docs/troubleshooting.html"' in text
    assert f"It asked us to send you to {uri[:200]}…, which is not registered for it." in text
    assert f"add this redirect URI to the client {site.client_id}." in text
    assert 'href="https://elsewhere' not in text  # it is a text, not a link
    assert f'href="/console/clients/{site.client_id}?add_redirect_uri=https%3A%2F%2Felsewhere' in text
    events = until(lambda: [e for e in server.log_events("request.refused") if e["request"] in response.text])
    assert "the host is not one of the client's redirect_hosts" in events[0]["reason"]


def test_refused_authorization_of_a_disabled_client_shows_the_reason(server: Server, anonymous: Browser) -> None:
    site = new_site(server)
    server.sso("client", "disable", site.client_id)
    assert "the client is disabled" in anonymous.authorize(site).text


def test_page_of_a_public_service_does_not_show_the_reason(behind_tls: httpx.Client) -> None:
    site = {"client_id": "shop", "response_type": "code", "response_mode": "query", "scope": "openid", "nonce": "n"}
    response = behind_tls.get(AUTHORIZE, params={**site, "redirect_uri": "http://game.example.com/cb"})
    assert response.status_code == 400
    assert response.headers["X-Request-Id"] in response.text
    assert "https" not in html.unescape(response.text).partition("<main")[2].partition("</main")[0]
