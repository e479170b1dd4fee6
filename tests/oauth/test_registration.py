"""Dynamic client registration (RFC 7591, RFC 7592), and what an attacker may try with it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from sso.core.keys import public_jwk
from sso.oauth.registration.metadata import ClientMetadata
from sso.oauth.registration.registration import MAX_WAITING
from sso.services import Services
from sso.web.client_address import LOCAL
from tests.kit import postgres
from tests.kit.browser import query
from tests.kit.client_assertions import KEYS
from tests.kit.oauth import AUTHORIZE, Browser, Site, close_all, error_of, new_browser, new_site, pkce, query_of
from tests.kit.registration_of_clients import REGISTER, RegistrationService, registration_service
from tests.kit.server import Server

JWKS = {"keys": [public_jwk(KEYS["ES256"].public_key(), "one")]}


@pytest.fixture(scope="module")
def service(
    postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistrationService]:
    with registration_service(postgres_server, tmp_path_factory.mktemp("registration")) as service:
        yield service
        close_all()


@pytest.fixture(scope="module")
def browser(service: RegistrationService) -> Browser:
    return new_browser(service.server).sign_in()


def site_of(service: RegistrationService, client: dict[str, Any]) -> Site:
    uri = client["redirect_uris"][0]
    return Site(service.server, client["client_id"], client.get("client_secret"), uri, "oidc")


def allow(browser: Browser, site: Site, **changes: str | None) -> httpx.Response:
    """Authorizes, and allows it on the consent page."""
    page = browser.authorize(site, **changes)
    assert page.status_code == 200, page.text
    return browser.submit(page, {"decision": "allow"}, form=0)


def code_of(browser: Browser, site: Site, challenge: str) -> str:
    answer = allow(browser, site, code_challenge=challenge, code_challenge_method="S256")
    assert answer.status_code == 303, answer.text
    return query_of(answer)["code"]


def tokens_of(browser: Browser, site: Site) -> dict[str, Any]:
    verifier, challenge = pkce()
    code = code_of(browser, site, challenge)
    answer = site.redeem(code, headers={}, client_id=site.client_id, code_verifier=verifier)
    assert answer.status_code == 200, answer.text
    tokens: dict[str, Any] = answer.json()
    return tokens


def test_registered_client_is_used_after_its_approval(service: RegistrationService, browser: Browser) -> None:
    client = service.registered(client_name="Build Helper", grant_types=["authorization_code", "refresh_token"])
    assert client["approved"] is False
    stored = service.client(client["client_id"])
    expected = {"registered_by": "open", "approved": False, "disabled": True, "consent": True, "profile": "oidc"}
    assert {name: stored[name] for name in expected} == expected
    site = site_of(service, client)
    page = browser.authorize(site)
    assert page.status_code == 400
    assert "not approved yet" in page.text
    assert client["client_id"] in [record["client_id"] for record in service.waiting()]
    # An approval is needed: nothing else enables the client.
    refused = service.change(client["client_id"], disabled=False)
    assert refused.status_code == 400
    assert refused.json()["field"] == ["disabled"]

    service.approve(client["client_id"])
    page = browser.authorize(site, code_challenge=pkce()[1], code_challenge_method="S256")
    assert "tool.example.net" in page.text
    assert "third-party" in page.text
    tokens = tokens_of(browser, site)
    claims = site.claims(tokens["id_token"])
    assert client["client_id"] in (claims["aud"], claims["azp"])
    # The tokens of a third party are not accepted by the APIs of this service.
    token = {"Authorization": f"Bearer {tokens['access_token']}"}
    for path in ("/api/admin/users", "/proxy/oauth/exchangeToken"):
        method = "GET" if path.startswith("/api") else "POST"
        assert service.http.request(method, path, headers=token).status_code in (401, 403)
    # Without an approval, everything ends.
    service.change(client["client_id"], approved=False)
    assert site.userinfo(tokens["access_token"]).status_code == 401


def test_user_is_asked_each_time_before_a_third_party_acts_elsewhere(
    service: RegistrationService, browser: Browser
) -> None:
    api = new_site(service.server, profile="oidc", resource_server=True, application_id=81)
    client = service.registered(client_name="Pipeline")
    service.approve(client["client_id"])
    site = site_of(service, client)
    tokens_of(browser, site)  # with a consent to the scopes, which is remembered
    proof: dict[str, str | None] = {"code_challenge": pkce()[1], "code_challenge_method": "S256"}
    assert browser.authorize(site, **proof).is_redirect
    for _ in range(2):
        page = browser.authorize(site, resource=api.client_id, **proof)
        assert page.status_code == 200
        assert api.client_id in page.text
        assert "act for you at" in page.text
        assert browser.submit(page, {"decision": "allow"}, form=0).status_code == 303
    silent = browser.authorize(site, resource=api.client_id, prompt="none", **proof)
    assert query_of(silent)["error"] == "consent_required"


def test_unapproved_client_is_refused_at_every_endpoint(service: RegistrationService, browser: Browser) -> None:
    client = service.registered(token_endpoint_auth_method="client_secret_post")
    fields = {"client_id": client["client_id"], "client_secret": client["client_secret"]}
    request = {"response_type": "code", "redirect_uri": client["redirect_uris"][0], "scope": "openid"}
    answers = {
        "/proxy/oauth/token": {
            "grant_type": "authorization_code",
            "code": "c",
            "redirect_uri": request["redirect_uri"],
        },
        "/proxy/oauth/token ": {"grant_type": "client_credentials"},
        "/proxy/oauth/token  ": {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "d"},
        "/proxy/oauth/par": request,
        "/proxy/oauth/device_authorization": {"scope": "openid"},
        "/proxy/oauth/introspect": {"token": "t"},
        "/proxy/oauth/token/revoke": {"token": "t"},
    }
    for path, form in answers.items():
        assert error_of(service.http.post(path.strip(), data=fields | form)) == (401, "invalid_client"), path
    page = service.http.get(AUTHORIZE, params={"client_id": client["client_id"], **request})
    assert page.status_code == 400
    assert "Location" not in page.headers


def test_client_manages_its_registration(service: RegistrationService) -> None:
    client = service.registered(service.initial_token(), token_endpoint_auth_method="client_secret_basic")
    assert client["approved"] is True
    assert service.client(client["client_id"])["registered_by"].startswith("token:")
    read = service.manage("GET", client).json()
    assert read["redirect_uris"] == client["redirect_uris"]
    assert read["registration_access_token"] == client["registration_access_token"]
    assert "client_secret" not in read
    body = {name: client[name] for name in ("client_id", "client_secret", "redirect_uris", "client_name")}
    # What nobody sees can be changed without a new approval.
    changed = service.manage("PUT", client, json={**body, "dpop_bound_access_tokens": True})
    assert changed.status_code == 200, changed.text
    assert changed.json()["dpop_bound_access_tokens"]
    assert changed.json()["approved"]
    problems = [
        ({"client_id": "root1"}, "client_id"),
        ({"client_secret": "another secret 0123456789"}, "client_secret"),
        ({"client_name": "\u202eevil"}, "client_name"),
    ]
    for fields, name in problems:
        answer = service.manage("PUT", client, json=body | fields)
        assert error_of(answer) == (400, "invalid_client_metadata")
        assert answer.json()["error_description"].startswith(f"{name}: ")
    with_logo = service.change(client["client_id"], logo_uri="https://tool.example.net/logo.png")
    assert with_logo.status_code == 200, with_logo.text
    answer = service.manage("PUT", client, json=body | {"redirect_uris": ["https://[x"]})
    assert error_of(answer) == (400, "invalid_redirect_uri")
    assert service.manage("DELETE", client).status_code == 204
    assert error_of(service.manage("GET", client)) == (401, "invalid_token")


async def test_algorithm_of_id_tokens_is_that_of_the_key_that_signs_them(services: Services) -> None:
    """The main key of this service is not RS256, which is the default of the metadata."""
    registration = replace(services.oauth.registration, mode="approved")
    client = await registration.register(ClientMetadata(redirect_uris=["https://tool.example.net/cb"]), "", LOCAL)
    assert client["id_token_signed_response_alg"] == services.keys.signer().algorithm != "RS256"


@pytest.mark.parametrize(
    "metadata",
    [
        {"redirect_uris": ["http://127.0.0.1/cb"]},  # without a name
        {"token_endpoint_auth_method": "private_key_jwt", "jwks": JWKS, "tos_uri": "https://tool.example.net/terms"},
    ],
)
def test_client_can_send_back_what_it_reads(service: RegistrationService, metadata: dict[str, Any]) -> None:
    client = service.registered(service.initial_token(), **metadata)
    assert client | metadata == client
    read = service.manage("GET", client).json()
    changed = service.manage("PUT", client, json={**read, "dpop_bound_access_tokens": True})
    assert changed.status_code == 200, changed.text
    assert changed.json() == {**read, "dpop_bound_access_tokens": True}


@pytest.mark.parametrize(
    "change",
    [
        {"redirect_uris": ["https://tool.example.net/cb", "https://evil.example.org/cb"]},
        {"client_name": "Another tool"},
        {"policy_uri": "https://evil.example.org/policy"},
    ],
)
def test_change_of_what_was_approved_needs_a_new_approval(
    service: RegistrationService, browser: Browser, change: dict[str, Any]
) -> None:
    client = service.registered(service.initial_token(), client_name="Tool of a team")
    site = site_of(service, client)
    tokens = tokens_of(browser, site)
    body = {name: client[name] for name in ("client_id", "client_name", "redirect_uris", "token_endpoint_auth_method")}
    answer = service.manage("PUT", client, json=body | change)
    assert answer.status_code == 200, answer.text
    assert answer.json()["approved"] is False
    assert browser.authorize(site).status_code == 400
    assert site.userinfo(tokens["access_token"]).status_code == 401  # its tokens end, too
    service.approve(client["client_id"])
    # A client that an administrator has disabled cannot change itself before it is enabled again.
    service.change(client["client_id"], disabled=True)
    assert service.manage("PUT", client, json=body).status_code == 409


def test_registration_token_of_another_client_is_refused(service: RegistrationService) -> None:
    one, other = service.registered(), service.registered()
    body = {"client_id": one["client_id"], "redirect_uris": ["https://evil.example.org/cb"]}
    tokens = [other["registration_access_token"], "", "x" * 43, service.initial_token()]
    for token in tokens:
        for method, options in (("GET", {}), ("PUT", {"json": body}), ("DELETE", {})):
            answer = service.manage(method, one, token, **options)
            assert error_of(answer) == (401, "invalid_token")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    # A client of an administrator has no registration, so it has no registration access token either.
    site = new_site(service.server, profile="oidc")
    for token in tokens:
        assert service.manage("GET", {"client_id": site.client_id}, token).status_code == 401
    assert service.client(one["client_id"])["redirect_uris"] == one["redirect_uris"]


def test_text_that_is_no_id_is_an_unknown_client(service: RegistrationService) -> None:
    with service.server.client() as http:
        for method in ("GET", "DELETE"):
            answer = http.request(method, "/proxy/oauth/register/%00", headers={"Authorization": "Bearer x"})
            assert answer.status_code == 401, answer.text


def test_metadata_that_is_refused_names_the_field(service: RegistrationService) -> None:
    own = service.server.base_url
    new_site(service.server, profile="oidc", name="Tank Shop", first_party=True)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"redirect_uris": []}, "redirect_uris"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "redirect_uris[0]"),
        ({"redirect_uris": ["https://[x"]}, "redirect_uris[0]"),
        ({"redirect_uris": ["https://[1.2.3.4]/cb"]}, "redirect_uris[0]"),
        ({"redirect_uris": ["https://[::::]/cb"], "client_name": "Tool"}, "redirect_uris[0]"),
        ({"redirect_uris": ["https://a.example.com/cb#x"]}, "redirect_uris[0]"),
        ({"redirect_uris": ["https://user@a.example.com/cb"]}, "redirect_uris[0]"),
        ({"redirect_uris": [f"{own}/login"]}, "redirect_uris[0]"),
        ({"redirect_uris": [f"https://a{number}.example.com/" for number in range(21)]}, "redirect_uris"),
        ({"client_id": "shop"}, "client_id"),
        ({"client_secret": "mine 0123456789abcdef"}, "client_secret"),
        ({"grant_types": ["client_credentials"]}, "grant_types"),
        ({"grant_types": ["refresh_token"]}, "grant_types"),
        ({"grant_types": ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"]}, "grant_types"),
        ({"response_types": ["token"]}, "response_types"),
        ({"token_endpoint_auth_method": "tls_client_auth"}, "token_endpoint_auth_method"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "jwks"),
        ({"jwks_uri": "https://10.0.0.1/keys"}, "jwks_uri"),
        ({"jwks": {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}}, "jwks"),
        ({"tos_uri": "javascript:alert(1)"}, "tos_uri"),
        ({"client_name": "a\x07b"}, "client_name"),
        ({"client_name": "ab\u202ecd"}, "client_name"),
        ({"client_name": "a\u200bb"}, "client_name"),
        ({"client_name": "Z" + "\u0301" * 20}, "client_name"),
        ({"client_name": "P\u0430yPal"}, "client_name"),  # a Cyrillic letter among Latin ones
        ({"client_name": "x" * 65}, "client_name"),
        ({"client_name": "Tank Shop"}, "client_name"),
        ({"client_name": "T4nk  sh0p".replace("4", "a")}, "client_name"),
        ({"client_name": "The T\u00e0nk-Shop Support"}, "client_name"),
        ({"client_name": 7}, "client_name"),
    ]
    for metadata, name in refused:
        answer = service.register(**metadata)
        code = "invalid_redirect_uri" if name.startswith("redirect_uris") else "invalid_client_metadata"
        assert error_of(answer) == (400, code), metadata
        assert answer.json()["error_description"].startswith(f"{name}"), answer.text


def test_registered_client_gets_no_more_rights(service: RegistrationService) -> None:
    """Neither by its metadata, which has other names for them, nor later by an administrator."""
    client = service.registered(
        service.initial_token(),
        first_party=True,
        consent=False,
        resource_server=True,
        application_id=1,
        profile="strict",
        logo_uri="https://tool.example.net/our-logo.svg",
        signin_text="Enter your password again",
        registered_by="",
    )
    stored = service.client(client["client_id"])
    expected = {"first_party": False, "consent": True, "resource_server": False, "application_id": 0, "logo_uri": ""}
    assert {name: stored[name] for name in expected} == expected
    assert (stored["profile"], stored["signin_text"]) == ("oidc", "")
    for fields in (
        {"first_party": True},
        {"consent": False},
        {"profile": "strict"},
        {"grant_types": ["client_credentials"], "application_id": 1, "client_secret": "a secret 0123456789"},
        {"grant_types": ["urn:ietf:params:oauth:grant-type:device_code"]},
    ):
        assert service.change(client["client_id"], **fields).status_code == 400, fields
    document = service.admin("GET", "/state/export").text
    assert client["client_id"] not in document


def test_initial_access_token_is_used_no_more_often_than_it_says(service: RegistrationService) -> None:
    token = service.initial_token(uses=5)
    with ThreadPoolExecutor(25) as pool:
        answers = list(pool.map(lambda _: service.register(token).status_code, range(25)))
    assert sorted(answers) == [201] * 5 + [401] * 20
    # A refused registration uses nothing up.
    token = service.initial_token()
    assert service.register(token, redirect_uris=[]).status_code == 400
    assert service.register(token).status_code == 201
    assert error_of(service.register(token)) == (401, "invalid_token")
    # A revoked one is used up, too.
    revoked = service.admin("POST", "/registration-tokens", json={"uses": 3, "days": 2}).json()["data"]
    listed = service.admin("GET", "/registration-tokens").json()["data"]
    assert {**revoked, "token": None} in [{**record, "token": None} for record in listed]
    assert service.admin("DELETE", f"/registration-tokens/{revoked['id']}").status_code == 200
    assert service.admin("DELETE", f"/registration-tokens/{revoked['id']}").status_code == 404
    assert service.register(revoked["token"]).status_code == 401


def test_clients_that_wait_are_limited(service: RegistrationService) -> None:
    """Registrations at the same time do not exceed the limit either."""
    one, before = service.registered()["client_id"], len(service.waiting())
    sql = """INSERT INTO oauth_clients SELECT (jsonb_populate_record(c, jsonb_build_object('client_id', 'copy' || n))).*
        FROM oauth_clients c, generate_series(1, $2) n WHERE client_id = $1"""
    query(service.server, sql, one, MAX_WAITING - 10 - before)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: service.register(), range(20)))
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len(refused) == 10
    assert {(answer.status_code, answer.json()["error"]) for answer in refused} == {(503, "temporarily_unavailable")}
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    assert len(service.waiting()) == MAX_WAITING
    # A registration with a token needs no place among them. A refusal frees one.
    assert service.register(service.initial_token()).status_code == 201
    assert service.admin("DELETE", f"/clients/{one}").status_code == 200
    assert service.register().status_code == 201
    query(service.server, "DELETE FROM oauth_clients WHERE NOT approved")  # leaves room for other tests


def test_registration_is_limited_by_network_and_needs_the_setting(
    server: Server, postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with server.client() as client:
        assert client.post(REGISTER, json={"redirect_uris": ["https://a.example.com/"]}).status_code == 404
        assert client.get(f"{REGISTER}/x").status_code == 404
        metadata = client.get("/.well-known/oauth-authorization-server").json()
        assert not {"registration_endpoint", "client_id_metadata_document_supported"} & metadata.keys()
    limits = {"SSO_CLIENT_REGISTRATION": "token", "SSO_RATE_CLIENT_REGISTRATION": "3", "SSO_WORKERS": "1"}
    with registration_service(postgres_server, tmp_path_factory.mktemp("token"), **limits) as service:
        metadata = service.http.get("/.well-known/oauth-authorization-server").json()
        assert metadata["registration_endpoint"] == f"{service.server.base_url}{REGISTER}"
        assert "client_id_metadata_document_supported" not in metadata
        token = service.initial_token(uses=100)
        statuses = [service.register().status_code, service.register("x" * 43).status_code]
        while 429 not in statuses:  # a new minute may begin meanwhile
            statuses.append(service.register(token).status_code)
            assert len(statuses) < 50
        assert statuses[:2] == [401, 401]
        assert set(statuses[2:]) <= {201, 429}
