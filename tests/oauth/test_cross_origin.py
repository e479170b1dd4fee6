"""CORS: pages of registered origins may call the endpoints, others get no CORS headers."""

from typing import Any

import httpx
import pytest

from sso.app import GAME_PATHS
from sso.core.field_errors import FieldError
from sso.oauth.clients import browser_origins
from tests.kit.long_tests import usual_part
from tests.kit.oauth import INTROSPECT, REVOKE, TOKEN, USERINFO, Browser, Site, error_of, new_site
from tests.kit.server import Server, until

pytestmark = pytest.mark.two_workers

DISCOVERY, KEYS = "/.well-known/openid-configuration", "/proxy/oauth/keys"
ENDPOINTS = [
    ("GET", DISCOVERY),
    ("GET", KEYS),
    ("POST", TOKEN),
    ("GET", USERINFO),
    ("POST", REVOKE),
    ("POST", INTROSPECT),
]
APP, OTHER, LISTED = "https://app.example.net", "https://app.example.net:8443", "http://localhost:5173"
FOREIGN = [
    "https://evil.example",
    "http://app.example.net",
    "https://APP.example.net",
    "https://app.example.net.evil.example",
    "https://app.example.net/",
    "https://app.example.net:443",
    "null",
    "",
    "https://x\u00e9.example",
    "https://" + "a" * 2000,
]


@pytest.fixture(scope="module")
def app(server: Server) -> Site:
    return new_site(
        server,
        public=True,
        profile="oidc",
        redirect_uri=f"{APP}/callback",
        redirect_uris=[f"{APP}/callback", f"{APP}:8443/callback"],
        origins=[LISTED],
        token_endpoint_auth_method="none",
    )


def cors_headers(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


def preflight(site: Site, path: str, origin: str, method: str = "POST") -> httpx.Response:
    headers = {
        b"Origin": origin.encode(),
        b"Access-Control-Request-Method": method.encode(),
        b"Access-Control-Request-Headers": b"authorization,content-type",
    }
    return site.http.request("OPTIONS", path, headers=headers)


@pytest.mark.parametrize("origin", [APP, OTHER, LISTED])
@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_pages_of_the_client_may_read_responses_and_errors(app: Site, method: str, path: str, origin: str) -> None:
    response = app.http.request(method, path, headers={"Origin": origin})
    assert cors_headers(response) == {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": "DPoP-Nonce, Location, Retry-After, WWW-Authenticate",
    }
    assert response.headers["Vary"] == "Origin"
    answer = preflight(app, path, origin, method)
    assert answer.is_success
    assert answer.headers["Access-Control-Allow-Origin"] == origin
    assert method in answer.headers["Access-Control-Allow-Methods"]
    assert {"authorization", "content-type", "idempotency-key"} <= set(
        answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    )
    assert int(answer.headers["Access-Control-Max-Age"]) >= 600
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_foreign_origins_get_no_cors_headers(app: Site, method: str, path: str) -> None:
    for origin in usual_part(FOREIGN, 2, ENDPOINTS.index((method, path))):
        response = app.http.request(method, path, headers={b"Origin": origin.encode()})
        assert cors_headers(response) == {}, origin
        assert cors_headers(preflight(app, path, origin, method)) == {}, origin


@pytest.mark.parametrize("path", ["/proxy/oauth/authorize", "/login", "/proxy/oauth/exchange", "/account"])
def test_other_endpoints_have_no_cors_headers(app: Site, path: str) -> None:
    assert cors_headers(app.http.get(path, headers={"Origin": APP})) == {}
    assert cors_headers(preflight(app, path, APP)) == {}


def test_only_pages_of_first_party_clients_may_call_the_endpoints_of_games(server: Server, app: Site) -> None:
    own, redirected = "https://play.example.net", "https://site.play.example.net"
    new_site(
        server,
        profile="oidc",
        first_party=True,
        redirect_uri=f"{redirected}/cb",
        redirect_uris=[f"{redirected}/cb"],
        origins=[own],
    )
    for number, path in enumerate(sorted(GAME_PATHS)):
        origin = (own, redirected)[number % 2]
        assert preflight(app, path, origin).headers["Access-Control-Allow-Origin"] == origin, path
        headers = cors_headers(app.http.post(path, json={}, headers={"Origin": origin}))
        assert headers["access-control-allow-origin"] == origin, path
        assert "Location" in headers["access-control-expose-headers"]
        for origin in usual_part((APP, LISTED, FOREIGN[0]), 1, number):
            assert cors_headers(preflight(app, path, origin)) == {}, path
            assert cors_headers(app.http.post(path, json={}, headers={"Origin": origin})) == {}, path
    allowed = preflight(app, "/proxy/api/guest", own).headers["Access-Control-Allow-Headers"].lower()
    assert {"factor", "request-sign", "content-type"} <= set(allowed.split(", "))


def test_origins_of_hosts_may_have_any_port(server: Server, app: Site) -> None:
    new_site(server, profile="oidc", redirect_hosts=["any-port.example.net"])
    for origin, allowed in (
        ("https://any-port.example.net", True),
        ("https://any-port.example.net:8443", True),
        ("https://sub.any-port.example.net", False),
    ):
        response = app.http.get(USERINFO, headers={"Origin": origin})
        assert ("access-control-allow-origin" in response.headers) is allowed, origin
        assert error_of(response) == (401, "invalid_token")


def test_new_origin_is_allowed_at_once_and_a_removed_one_soon_is_not(server: Server, app: Site) -> None:
    site = new_site(server, profile="oidc", redirect_uris=["https://game.example.com/cb"])
    new = "https://new-origin.example.net"
    assert cors_headers(app.http.get(USERINFO, headers={"Origin": new})) == {}
    server.apply({"clients": [{"client_id": site.client_id, "origins": [new]}]})
    for _ in range(8):  # both workers
        with server.client() as fresh:
            assert cors_headers(fresh.get(USERINFO, headers={"Origin": new})) != {}
    server.sso("client", "disable", site.client_id)
    assert until(lambda: cors_headers(app.http.get(USERINFO, headers={"Origin": new})) == {})


def test_strict_clients_have_no_origins(server: Server, app: Site) -> None:
    new_site(server, profile="strict", redirect_hosts=["strict.example.net"])
    assert cors_headers(app.http.get(USERINFO, headers={"Origin": "https://strict.example.net"})) == {}


def test_programs_get_the_same_responses_as_before(site: Site, browser: Browser) -> None:
    token = site.tokens(browser)["access_token"]
    assert cors_headers(site.userinfo(token)) == {}
    assert cors_headers(site.http.get(KEYS)) == {"access-control-allow-origin": "*"}


def test_malformed_origins_are_refused(server: Server) -> None:
    client = {"client_id": "bad-origin", "profile": "oidc", "redirect_hosts": ["a.example"]}
    for origin in ("https://a.example/x", "https://A.example", "a.example", "*", "https://a.example:443"):
        with pytest.raises(FieldError, match="origins"):
            server.apply({"clients": [client | {"origins": [origin]}]})
    arguments = ("client", "add", "bad-origin", "--profile", "oidc", "--host", "a.example", "--origins", "*")
    result = server.sso(*arguments, check=False)
    assert result.returncode == 1
    assert "--origins: " in result.stderr


class ComparedText(str):
    """Counts how often it is compared with another text."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        ComparedText.comparisons += 1
        return str.__eq__(self, other)


async def test_unknown_origin_compares_each_redirect_uri_with_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 500
    uris = [ComparedText(f"https://app{number}.example.net/callback") for number in range(count)]
    hosts = [ComparedText(f"app{number}.example.net") for number in range(count)]
    row = {"redirect_hosts": hosts, "redirect_uris": uris, "origins": [], "first_party": False}
    further = row | {"redirect_uris": []}

    async def list_rows(_: object) -> list[dict[str, Any]]:
        return [row, further]

    monkeypatch.setattr(browser_origins, "list_origin_rows", list_rows)
    database: Any = None
    origins = browser_origins.BrowserOrigins(database, allow_http=False)
    assert await origins.is_allowed("https://app7.example.net")
    assert await origins.is_allowed("https://app7.example.net:444")
    assert not await origins.is_allowed("https://evil.example")
    assert ComparedText.comparisons < 20 * count
