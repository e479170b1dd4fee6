"""Rules that every request must meet, on both HTTP servers: Host, Authorization, literal paths."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from sso.config import ConfigError, load
from sso.web.allowed_hosts import AllowedHosts
from tests.kit.browser import Browser, new_user
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

KEYS = "/proxy/oauth/keys"  # a static response, sent without Quart
PATHS = (
    KEYS,
    "/api/permissions/keys",
    "/login",
    "/",
    "/static/sso.css",
    "/.well-known/openid-configuration",
    "/nothing",
)
SOCKET = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n"
)


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1"}
    settings |= {"SSO_HOSTS": "sso.internal, 192.0.2.7, [2001:db8::7]"}
    with running(tmp_path_factory.mktemp("rules"), **settings) as server:
        yield server


def send(server: Server, request: str) -> bytes:
    """Returns everything that the server sends until it closes the connection."""
    host, port = server.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request.encode("latin1"))
        return b"".join(iter(lambda: connection.recv(65536), b""))


def status_of(server: Server, path: str, *headers: str, host: str | None = "localhost", method: str = "GET") -> int:
    lines = [f"{method} {path} HTTP/1.1", "Connection: close", *headers]
    if host is not None:
        lines.append(f"Host: {host}")
    return int(send(server, "\r\n".join([*lines, "", ""])).split(b" ", 2)[1])


OWN_HOSTS = (
    "127.0.0.1", "127.0.0.1:8000", "127.8.9.10", "localhost", "LocalHost:1", "[::1]", "[::1]:8000", "sso.internal",
    "SSO.Internal:443", "192.0.2.7", "[2001:db8::7]:80", "[2001:DB8:0::7]",
)  # fmt: skip


def test_host_that_names_the_server_is_accepted(server: Server) -> None:
    for host in OWN_HOSTS:
        assert status_of(server, KEYS, host=host) == 200, host
        assert status_of(server, "/login", host=host) == 200, host


OTHER_HOSTS = (
    "evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "sso.internal.", "",
    "x@localhost", "localhost:x", "localhost:", "localhost, evil.example", "192.0.2.8", "[::2]", "0.0.0.0",
    "sso.internal:80:80", "[::1", "::1", "localhost/", "%6cocalhost", "2130706433", "lo\xe7alhost",
)  # fmt: skip


def test_host_that_names_another_server_gets_400(server: Server) -> None:
    for host in OTHER_HOSTS:
        for path in PATHS:
            assert status_of(server, path, host=host) == 400, (host, path)
        for path in ("/healthz", "/readyz"):
            assert status_of(server, path, host=host) == 200, (host, path)


def test_refused_host_is_named_in_the_error_text(server: Server) -> None:
    response = send(server, "GET /proxy/api/x HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert b"SSO_HOSTS" in response
    assert b"evil" not in response
    assert b"x-frame-options: DENY" in response


def test_head_and_conditional_requests_do_not_pass_with_another_host(server: Server) -> None:
    assert status_of(server, KEYS, host="evil.example", method="HEAD") == 400
    assert status_of(server, KEYS, "If-None-Match: *", host="evil.example") == 400


def test_http_1_0_without_host_gets_400_except_for_health(server: Server) -> None:
    for path, expected in ((KEYS, 400), ("/login", 400), ("/healthz", 200), ("/readyz", 200)):
        assert int(send(server, f"GET {path} HTTP/1.0\r\n\r\n").split(b" ", 2)[1]) == expected, path


@pytest.mark.parametrize(("host", "expected"), [("evil.example", 400), ("localhost", 101), ("sso.internal:1", 101)])
def test_websocket_host_is_checked(server: Server, host: str, expected: int) -> None:
    address = server.base_url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=60) as connection:
        head = f"GET /ws/gameSession/refresh/{'0' * 32} HTTP/1.1\r\nHost: {host}\r\n{SOCKET}\r\n"
        connection.sendall(head.encode())
        assert int(connection.recv(65536).split(b" ", 2)[1]) == expected


def test_form_under_a_rebound_name_is_refused(server: Server) -> None:
    """DNS rebinding: a page of another site reaches the server under the name of that site, which is its origin."""
    with Browser(server) as browser:
        browser.get("/login")
        fields = browser.form("/login") | {"login": new_user(server), "password": PASSWORD}
        assert browser.post("/login", fields, Origin="http://evil.example", Host="evil.example").status_code == 400
        assert browser.post("/login", fields, Origin="http://evil.example").status_code == 403
        assert browser.post("/login", fields, Origin="http://sso.internal:8000").status_code == 403
        allowed = browser.post("/login", fields, Origin="http://sso.internal:8000", Host="sso.internal:8000")
        assert allowed.status_code == 303


@pytest.mark.parametrize("path", [*PATHS, "/healthz", "/readyz", "/proxy/oauth/userinfo", "/api/permissions/user/info"])
def test_two_authorization_headers_get_400(server: Server, path: str) -> None:
    two = ("Authorization: Bearer a", "authorization: Bearer b")
    assert status_of(server, path, *two) == 400
    assert status_of(server, path, two[0], two[0]) == 400
    assert status_of(server, path, two[0]) != 400


@pytest.mark.parametrize("path", ["/proxy/oauth/userinfo", "/api/permissions/user/info", "/proxy/api/login"])
def test_credential_header_that_is_sent_twice_gets_400(server: Server, path: str) -> None:
    """A proxy between the client and the service might use the other one of the two."""
    for name in ("Factor", "Service-Jwt", "Ip", "Signature", "Request-Sign", "Sign", "Public-Key"):
        assert status_of(server, path, f"{name}: a", f"{name.lower()}: b") == 400, name
        assert status_of(server, path, f"{name}: a", f"{name}: a") == 400, name
        assert status_of(server, path, f"{name}: a") != 400, name


def test_websocket_with_two_authorization_headers_gets_400(server: Server) -> None:
    head = "GET /ws/gameSession/refresh/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: a\r\nAuthorization: b\r\n"
    assert send(server, f"{head}{SOCKET}\r\n").startswith(b"HTTP/1.1 400")


NO_ROUTES = (
    "//login", "/%2flogin", "/%2Flogin", "/login%2f", "/login%2Fcode", "/proxy%2foauth%2fkeys", "/login/",
    "//proxy/oauth/keys", "/%2fproxy/oauth/keys", "/proxy/oauth//keys", "/%70roxy/oauth/keys", "/%6cogin",
    "/./login", "/x/../login", "/static%2fsso.css", "/static/%2fsso.css", "/static//sso.css", "/%73tatic/sso.css",
    "/proxy/oauth/authorize%2fx", "/%2e/login", "/healthz%2f", "/health%7a", "/LOGIN", "/game/x%2fcontinue",
    "/api/permissions/application/publicKeys/1%2f2",
)  # fmt: skip


def test_path_that_is_not_literally_a_route_gets_404(server: Server) -> None:
    for path in NO_ROUTES:
        assert status_of(server, path) == 404, path
        assert status_of(server, f"{path}?next=%2faccount") == 404, path


@pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS"])
@pytest.mark.parametrize("path", ["project%2fmembership", "%70roject/membership", "project//membership"])
def test_api_path_that_is_not_literally_a_route_gets_404(server: Server, method: str, path: str) -> None:
    head = f"{method} /api/permissions/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
    response = send(server, f"{head}Connection: close\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 404")
    assert b'"status":"ERROR"' in response


def test_websocket_path_is_literal(server: Server) -> None:
    for path in ("/ws/gameSession%2frefresh/x", "/ws/gameSession/refresh/a%2fb", "/%77s/gameSession/refresh/x"):
        assert send(server, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{SOCKET}\r\n").startswith(b"HTTP/1.1 404"), path


def test_variable_part_of_a_path_may_be_percent_encoded(server: Server) -> None:
    with server.client() as client:
        assert client.get("/static/sso%2Ecss").status_code == 200
        assert client.get("/login?next=%2Faccount").status_code == 200
        plain, encoded = client.get("/game/nothing"), client.get("/game/%6eothing")
        assert plain.status_code == encoded.status_code == 303  # to sign in


def test_address_of_the_connection_is_accepted_on_a_wildcard_bind() -> None:
    hosts = AllowedHosts.from_settings(
        load(None, {"SSO_BIND": "0.0.0.0:8000,[::]:8000", "SSO_BASE_URL": "https://sso.example.com"})
    )
    assert hosts.allows(b"192.0.2.1:8000", ("192.0.2.1", 8000))
    assert hosts.allows(b"[2001:db8::1]", ("2001:db8::1", 8000))
    assert hosts.allows(b"sso.example.com", ("192.0.2.1", 8000))
    assert not hosts.allows(b"192.0.2.2", ("192.0.2.1", 8000))
    assert not hosts.allows(b"evil.example", ("192.0.2.1", 8000))
    assert not hosts.allows(b"0.0.0.0", ("192.0.2.1", 8000))


def test_hosts_of_binds_and_public_addresses_are_accepted() -> None:
    binds = {"SSO_BIND": "192.0.2.1:80,gateway_1:81,unix:/run/sso.sock"}
    hosts = AllowedHosts.from_settings(
        load(None, binds | {"SSO_BASE_URL": "https://a.example", "SSO_WS_URL": "wss://b.example"})
    )
    for name in (b"192.0.2.1", b"gateway_1:81", b"a.example:443", b"b.example", b"localhost"):
        assert hosts.allows(name, None), name
    assert not hosts.allows(b"192.0.2.3", ("192.0.2.3", 80))


def test_cache_of_accepted_hosts_is_bounded() -> None:
    hosts = AllowedHosts.from_settings(load(None, {}))
    for port in range(3000):
        assert hosts.allows(b"localhost:%d" % port, None)
    assert len(hosts.accepted) <= 256


@pytest.mark.parametrize(
    "value", ["*", "*.example.com", "https://a.example", "a.example:80", "a b", "a/b", "ä.example", "a,,b"]
)
def test_invalid_name_in_the_hosts_setting_is_a_configuration_error(value: str) -> None:
    with pytest.raises(ConfigError, match="SSO_HOSTS"):
        load(None, {"SSO_HOSTS": value})


def test_error_of_a_refused_host_is_a_page_for_browsers(server: Server) -> None:
    response = httpx.get(f"{server.base_url}/login", headers={"Host": "evil.example"}, timeout=60)
    assert response.status_code == 400
    assert response.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("path", [*PATHS, "/healthz", "/proxy/api/gameSession/getGsidResult"])
def test_query_with_too_many_parameters_gets_400(server: Server, path: str) -> None:
    """Parsing 16,000 of them would take 30 ms."""
    for query in ("a&" * 100, "%41&" * 7000, "&" * 7000):
        assert status_of(server, f"{path}?{query}") == 400
    assert status_of(server, f"{path}?{'&'.join(['a=b'] * 100)}") == status_of(server, path)


@pytest.mark.parametrize(
    ("name", "item", "between"),
    [("Cookie", "a=b", ";"), ("If-None-Match", '"a"', ","), ("If-Match", '"a"', ","), ("Range", "bytes=0-0", ",")],
)
@pytest.mark.parametrize("path", [*PATHS, "/healthz"])
def test_list_header_with_too_many_items_gets_400(
    server: Server, path: str, name: str, item: str, between: str
) -> None:
    """Parsing 30,000 tags would take 60 ms."""
    assert status_of(server, path, f"{name}: {between * 30_000}") == 400
    assert status_of(server, path, *[f"{name}: {between.join([item] * 50)}"] * 5) == 400
    assert status_of(server, path, f"{name}: {between.join([item] * 200)}") != 400


def test_websocket_with_too_many_parameters_gets_400(server: Server) -> None:
    head = f"GET /ws/gameSession/refresh/x?{'a&' * 100} HTTP/1.1\r\nHost: localhost\r\n"
    assert send(server, f"{head}{SOCKET}\r\n").startswith(b"HTTP/1.1 400")
