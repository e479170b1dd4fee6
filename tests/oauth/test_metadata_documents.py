"""Clients whose id is the address of a metadata document: its use, its approval, and what an attacker may try."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from sso.core.keys import public_jwk
from sso.core.path_ids import path_id
from tests.kit import postgres
from tests.kit.client_assertions import KEYS
from tests.kit.document_host import DocumentHost, document_host
from tests.kit.oauth import PAR, Browser, Site, close_all, new_browser, new_site, pkce, query_of
from tests.kit.registration_of_clients import RegistrationService, registration_service


@pytest.fixture(scope="module")
def service(
    postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistrationService]:
    with registration_service(postgres_server, tmp_path_factory.mktemp("documents")) as service:
        yield service
        close_all()


@pytest.fixture(scope="module")
def browser(service: RegistrationService) -> Browser:
    return new_browser(service.server).sign_in()


@pytest.fixture
def host() -> Iterator[DocumentHost]:
    with document_host() as host:
        yield host


def document_site(service: RegistrationService, host: DocumentHost, path: str, **changes: Any) -> Site:
    """A client with a document at this path."""
    document = {"client_id": host.url(path), "redirect_uris": ["https://agent.example.net/cb"], **changes}
    client_id = host.put(path, {name: value for name, value in document.items() if value is not None})
    return Site(service.server, client_id, None, "https://agent.example.net/cb", "oidc")


def nested_jwks(levels: int) -> dict[str, Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return {"keys": [{**public_jwk(KEYS["ES256"].public_key(), "key"), "other": value}]}


def reason_of(page: httpx.Response) -> str:
    assert page.status_code == 400, page.text
    return page.text


def allow(browser: Browser, site: Site, challenge: str) -> str:
    page = browser.authorize(site, code_challenge=challenge, code_challenge_method="S256")
    assert page.status_code == 200, page.text
    assert f"127.0.0.1:{site.client_id.split(':')[2].split('/')[0]}" in page.text  # the host of the document
    return query_of(browser.submit(page, {"decision": "allow"}, form=0))["code"]


def test_document_is_used_after_its_approval(
    service: RegistrationService, browser: Browser, host: DocumentHost
) -> None:
    site = document_site(service, host, "/tools/agent.json", client_name="Agent of a team")
    with ThreadPoolExecutor(10) as pool:  # the first uses at the same time store one client
        pages = list(pool.map(lambda _: browser.http.get("/proxy/oauth/authorize", params=site.query()), range(10)))
    assert {page.status_code for page in pages} == {400}
    assert all("not approved yet" in page.text for page in pages)
    stored = service.client(site.client_id)
    assert (stored["registered_by"], stored["approved"]) == ("metadata_document", False)
    service.approve(site.client_id)
    verifier, challenge = pkce()
    code = allow(browser, site, challenge)
    fetched = len(host.requests)
    answer = site.redeem(code, headers={}, client_id=site.client_id, code_verifier=verifier)
    assert answer.status_code == 200, answer.text
    claims = site.claims(answer.json()["id_token"])
    assert site.client_id in (claims["aud"], claims["azp"])
    assert len(host.requests) == fetched <= 2  # one for each worker; the token endpoint fetches nothing
    pushed = site.http.post(PAR, data=site.query(code_challenge=challenge, code_challenge_method="S256"))
    assert pushed.status_code == 201, pushed.text
    # An administrator deletes it: the next use puts it in the queue again.
    assert service.admin("DELETE", f"/clients/{path_id(site.client_id)}").status_code == 200
    assert "not approved yet" in reason_of(browser.authorize(site))
    # Refused for good: it stays disabled, whatever its document says.
    assert service.change(site.client_id, approved=True, disabled=True).status_code == 200
    assert "is disabled" in reason_of(browser.authorize(site))


def test_changed_document_needs_a_new_approval(
    service: RegistrationService, browser: Browser, host: DocumentHost
) -> None:
    """A worker looks again after a minute at the earliest, so the service starts again here."""
    site = document_site(service, host, "/changing.json", client_name="A changing agent")
    browser.authorize(site)
    service.approve(site.client_id)
    verifier, challenge = pkce()
    site.redeem(allow(browser, site, challenge), headers={}, client_id=site.client_id, code_verifier=verifier)
    document_site(
        service,
        host,
        "/changing.json",
        client_name="A changing agent",
        redirect_uris=["https://agent.example.net/cb", "https://evil.example.org/cb"],
    )
    service.server.stop()
    service.server.start()
    evil = Site(service.server, site.client_id, None, "https://evil.example.org/cb", "oidc")
    assert "not approved yet" in reason_of(browser.authorize(evil))
    assert "not approved yet" in reason_of(browser.authorize(site))


def test_documents_that_are_refused(service: RegistrationService, browser: Browser, host: DocumentHost) -> None:
    new_site(service.server, profile="oidc", name="Dragon Forum")
    target = host.put("/target.json", {"client_id": host.url("/moved.json")})
    refused: dict[str, tuple[dict[str, Any], str]] = {
        "/other.json": ({"client_id": "https://agent.example.net/client.json"}, "must be the address of the document"),
        "/secret.json": ({"client_secret": "public"}, "the document is public"),
        "/basic.json": ({"token_endpoint_auth_method": "client_secret_basic"}, "token_endpoint_auth_method"),
        "/uris.json": ({"redirect_uris": ["javascript:alert(1)"]}, "redirect_uris"),
        "/none.json": ({"redirect_uris": None}, "redirect_uris"),
        "/name.json": ({"client_name": "Dragon-F0rum"}, "client_name"),
        "/bidi.json": ({"client_name": "a\u202eb"}, "client_name"),
        "/keys.json": ({"token_endpoint_auth_method": "private_key_jwt", "jwks": nested_jwks(300)}, "64 levels"),
        "/large.json": ({"software_id": "x" * 6000}, "more than 5120 bytes"),
    }
    for path, (changes, reason) in refused.items():
        assert reason in reason_of(browser.authorize(document_site(service, host, path, **changes))), path
    host.put("/moved.json", b"", 302, Location=target)
    host.put("/page.json", {}, Content_Type="text/html")
    outside = {
        host.url("/moved.json"): "not 302",
        host.url("/page.json"): "content type",
        host.url("/missing.json"): "not 404",
        "http://192.0.2.7/client.json": "https://",
        "https://agent.example.net": "must have a path",
        "https://agent.example.net/a/../b.json": "dot segments",
        f"https://user@127.0.0.1:{host.port}/x.json": "https://",
        "https://[x/y": "https://",
        "https://[1.2.3.4]/client.json": "https://",
        "https://agent.example.net:x/client.json": "https://",
        "https://agent.example.net:99999/client.json": "https://",
        "https://169.254.169.254/latest/meta-data": "not allowed",
    }
    for client_id, reason in outside.items():
        site = Site(service.server, client_id, None, "https://agent.example.net/cb", "oidc")
        assert reason in reason_of(browser.authorize(site)), client_id
        pushed = site.http.post(PAR, data=site.query())
        assert (pushed.status_code, pushed.json()["error"]) == (400, "invalid_request"), client_id
        answer = site.redeem("x" * 43, headers={}, client_id=client_id)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), client_id
    assert "/target.json" not in host.requests
    waiting = service.admin("GET", "/clients", params={"registered": "1", "limit": "1000"}).json()["data"]
    assert not {record["client_id"] for record in waiting} & {*outside, *(host.url(path) for path in refused)}
    # A host that fails is not asked again for a while, whoever sends users.
    before = len(host.requests)
    for _ in range(10):
        browser.authorize(Site(service.server, host.url("/missing.json"), None, "https://agent.example.net/cb", "oidc"))
    assert len(host.requests) <= before + 1  # by the other worker


def test_pushes_with_a_refused_document_are_limited(
    postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory, host: DocumentHost
) -> None:
    folder = tmp_path_factory.mktemp("limited")
    with registration_service(postgres_server, folder, SSO_RATE_AUTHORIZE="2") as service:
        site = document_site(service, host, "/basic.json", token_endpoint_auth_method="client_secret_basic")
        statuses = [service.http.post(PAR, data=site.query()).status_code for _ in range(4)]
        assert statuses == [400, 400, 429, 429]
