"""The test of the connection to an identity provider: what it finds, which field it names, and its limit."""

import html
import itertools
from collections.abc import Iterator

import pytest

from sso.admin.identity_providers import TESTS_PER_MINUTE
from sso.core.ids import digest
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.perm.endpoints.conftest import Studio
from tests.upstream import stand_ins
from tests.upstream.stand_ins import SECRET, CodeProvider
from tests.upstream.stores import AnyStore, AppleStore, GoogleStore, OidcStore, SteamStore, add_store

SECTION = "/console/identity-providers"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def clerk(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_clients") as browser:
        yield browser


@pytest.fixture
def upstream() -> Iterator[CodeProvider]:
    provider = CodeProvider()
    with stand_ins.running(provider):
        yield provider


@pytest.fixture
def provider_id(root_browser: ConsoleBrowser, upstream: CodeProvider) -> Iterator[str]:
    """A provider whose issuer is a server of the test."""
    name = f"tested-{next(_numbers)}"
    root_browser.open(f"{SECTION}/new", params={"preset": "oidc"})
    root_browser.act(f"{SECTION}/new", id=name, issuer=upstream.url, client_id="sso", client_secret=SECRET)
    yield name
    query(root_browser.server, "DELETE FROM identity_providers WHERE provider_id = $1", name)


def run_test(browser: ConsoleBrowser, provider_id: str) -> str:
    """Returns what the page says about the connection."""
    path = f"{SECTION}/{provider_id}"
    browser.open(path)
    answer = browser.submit(f"{path}/test")
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text).partition("Test of the connection")[2].partition("</section>")[0]


def test_connection_test_shows_what_was_found(clerk: ConsoleBrowser, provider_id: str, upstream: CodeProvider) -> None:
    outcome = run_test(clerk, provider_id)
    assert "Works</span>" in outcome
    for text in ("matches", f"{upstream.url}/token", "1 key to verify ID tokens", "invalid_grant"):
        assert text in outcome, text
    assert SECRET not in outcome
    assert "/authorize" not in upstream.requests


def test_connection_test_names_the_wrong_field(clerk: ConsoleBrowser, provider_id: str, upstream: CodeProvider) -> None:
    upstream.wrong_metadata = {"issuer": "https://other.example"}
    outcome = run_test(clerk, provider_id)
    assert "Does not work" in outcome
    assert "calls itself https://other.example" in outcome
    assert "Check the field <strong>Issuer</strong>" in outcome
    upstream.wrong_metadata = {"jwks_uri": f"{upstream.url}/.well-known/openid-configuration"}
    assert "expected a JWK set" in run_test(clerk, provider_id)
    upstream.wrong_metadata = {"token_endpoint": "ftp://provider.example/token"}
    assert "token_endpoint: expected an https address" in run_test(clerk, provider_id)
    upstream.wrong_metadata, upstream.token_error = {}, "invalid_client"
    assert "Check the field <strong>Client id and Client secret</strong>" in run_test(clerk, provider_id)
    upstream.down = True
    assert "status 503" in run_test(clerk, provider_id)


def test_connection_test_sends_nothing_to_private_addresses_and_names_the_setting(
    clerk: ConsoleBrowser, provider_id: str, upstream: CodeProvider
) -> None:
    upstream.wrong_metadata = {"token_endpoint": "https://10.255.255.1/token", "jwks_uri": "https://[fd00::1]/jwks"}
    outcome = run_test(clerk, provider_id)
    for url in upstream.wrong_metadata.values():
        assert f"{url}: the address of the host is not allowed; SSO_UPSTREAM_NETWORKS" in outcome, url


def test_addresses_of_an_oauth_provider_are_tested(
    root_browser: ConsoleBrowser, clerk: ConsoleBrowser, upstream: CodeProvider
) -> None:
    root_browser.open(f"{SECTION}/new", params={"preset": "oauth2"})
    addresses = {"authorization_url": "/jwks", "token_url": "/token", "userinfo_url": "/api/me"}
    fields = {name: f"{upstream.url}{path}" for name, path in addresses.items()}
    root_browser.act(f"{SECTION}/new", id="tested-oauth", client_id="sso", client_secret=SECRET, **fields)
    outcome = run_test(clerk, "tested-oauth")
    assert ("Works</span>" in outcome, "Userinfo address" in outcome) == (True, True)
    upstream.down = True
    outcome = run_test(clerk, "tested-oauth")
    for title in ("Authorization address", "Token address", "Userinfo address"):
        assert f"Check the field <strong>{title}</strong>" in outcome, title


def test_connection_tests_of_an_administrator_are_limited(studio: Studio, provider_id: str) -> None:
    with console_browser(studio, "can_manage_clients") as browser:
        run_test(browser, provider_id)
        change = "UPDATE throttle SET since = now() + interval '10 minutes', expires = 'infinity' WHERE key = $1"
        query(studio.server, change, digest(f"connection test:{browser.user_id} None"))
        for _ in range(TESTS_PER_MINUTE - 1):
            run_test(browser, provider_id)
        answer = browser.submit(f"{SECTION}/{provider_id}/test")
        assert (answer.status_code, "Retry-After" in answer.headers) == (429, True)


@pytest.mark.parametrize("kind", [SteamStore, GoogleStore, AppleStore, OidcStore])
def test_store_is_asked_with_a_ticket_that_does_not_exist(root_browser: ConsoleBrowser, kind: type[AnyStore]) -> None:
    store = kind()
    with stand_ins.running(store):
        provider_id = add_store(root_browser.server, store)
        assert "Works</span>" in run_test(root_browser, provider_id)
        if "client_secret" in store.record():
            root_browser.server.apply({"identity_providers": [{"id": provider_id, "client_secret": "wrong"}]})
            outcome = run_test(root_browser, provider_id)
            assert "Check the field <strong>Client id and Client secret</strong>" in outcome
        store.fault = "down"
        assert store.kind == "game_center" or "Does not work</span>" in run_test(root_browser, provider_id)
    query(root_browser.server, "DELETE FROM identity_providers WHERE provider_id = $1", provider_id)
