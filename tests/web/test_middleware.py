"""The middleware, over HTTP: the headers of every response, and that invalid input gets an error and breaks nothing."""

import random
import re
import socket
from collections.abc import Iterator, Sequence
from urllib.parse import quote_from_bytes

import httpx
import pytest
from quart import Quart

from scripts.reference_tables.route_limits import offline_services
from sso.app import build_app
from sso.health import Health
from sso.telemetry.metrics import Metrics
from sso.web.csrf import csrf_token
from sso.web.fast_quart.app import FastQuart
from tests.kit.browser import OWN_SCRIPTS, SESSION, VISIT, Browser, fresh_browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game
from tests.kit.long_tests import IS_LONG_RUN, usual_part
from tests.kit.malformed_bodies import BODIES, FORM, PIECES
from tests.kit.server import Server

KEYS = ("/proxy/oauth/keys", "/api/permissions/keys")
OAUTH = (
    "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/account/sites/remove",
    "/proxy/oauth/authorize", "/proxy/oauth/authorize/<request_id>", "/proxy/oauth/token", "/proxy/oauth/token/revoke",
    "/proxy/oauth/userinfo", "/proxy/oauth/exchange", "/proxy/oauth/exchangeToken", "/proxy/oauth/exchangeJwt",
    "/proxy/oauth/introspect", "/proxy/oauth/par", "/proxy/oauth/logout", "/proxy/oauth/device_authorization",
    "/proxy/oauth/register", "/proxy/oauth/register/<client_id>", "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/api/admin", "/.well-known/oauth-protected-resource/api/permissions",
    "/.well-known/oauth-protected-resource/access/v1",
)  # fmt: skip
PERMISSIONS = tuple(
    f"/api/permissions/{path}"
    for path in (
        "application", "application/tags", "application/publicKeys/<app_id>", "application/publicKey/<key_id>",
        "user/info", "publish", "project", "project/membership", "group", "group/access", "group/tags", "accessKey",
        "roles", "meta/schema", "meta/data", "check", "audit",
    )
)  # fmt: skip
AUTHZEN = (
    "/.well-known/authzen-configuration", "/access/v1/evaluation", "/access/v1/evaluations", "/access/v1/search/action",
    "/access/v1/search/subject", "/access/v1/search/resource",
)  # fmt: skip
SIGNALS = (
    "/.well-known/ssf-configuration", "/ssf/stream", "/ssf/status", "/ssf/subjects:add", "/ssf/subjects:remove",
    "/ssf/verify", "/ssf/poll",
)  # fmt: skip
ADMIN = tuple(
    f"/api/admin/{path}"
    for path in (
        "access-keys", "access-keys/<key_id>", "applications", "applications/<application_id>",
        "applications/<application_id>/assertions", "applications/<application_id>/holders",
        "applications/<application_id>/who", "users/<user_id>/can",
        "applications/<application_id>/keys", "applications/<application_id>/keys/<kid>",
        "applications/<application_id>/service-jwt", "applications/<application_id>/email-secret",
        "applications/<application_id>/data-secret", "data-requests", "data-requests/<number>/retry",
        "applications/<application_id>/replica", "applications/<application_id>/replica/users",
        "applications/<application_id>/replica/changes", "applications/<application_id>/restore", "changes",
        "conditions/test", "conditions/matches", "conditions/suggestions", "groups",
        "figures", "groups/<group_id>", "projects", "projects/<project_id>", "system",
        "projects/<project_id>/members", "projects/<project_id>/members/<user_id>", "projects/<project_id>/roles",
        "projects/<project_id>/restore", "identity-providers/<provider_id>/test",
        "roles",
        "roles/<application_id>/<name>", "schemas", "schemas/<application_id>",
        "audit", "audit/<entry_id>", "invitations", "invitations/<invitation_id>", "clients",
        "clients/<client_id>", "clients/<client_id>/rotate-secret", "clients/<client_id>/refuse", "registration-tokens",
        "registration-tokens/<token_id>", "clients/<client_id>/signal-streams",
        "clients/<client_id>/signal-streams/<stream_id>", "clients/<client_id>/requests",
        "clients/<client_id>/recording", "clients/<client_id>/signal-streams/<stream_id>/examples",
        "assertions/test", "brand", "game-sessions", "game-sessions/<gsid>", "violations/<violation_id>",
        "identity-providers", "identity-providers/<provider_id>", "signing-keys", "signing-keys/<kid>",
        "state", "state/apply", "state/diff", "state/export", "webhooks/<webhook_id>/dead-letters",
        "users", "users/import", "users/<user_id>", "users/<user_id>/assignments", "users/<user_id>/factors",
        "users/<user_id>/games",
        "users/<user_id>/factors/block", "users/<user_id>/export", "users/<user_id>/restore",
        "users/<user_id>/bans", "users/<user_id>/bans/<ban_id>", "users/<user_id>/links",
        "users/<user_id>/links/<link_id>", "users/<user_id>/merge", "users/<user_id>/merges", "users/<user_id>/unmerge",
        "users/<user_id>/impersonate",
        "users/<user_id>/games/<sign_in_id>", "users/<user_id>/permissions", "users/<user_id>/sessions",
        "users/<user_id>/sessions/<session_id>", "webhooks", "webhooks/<webhook_id>", "webhooks/<webhook_id>/failed",
        "webhooks/<webhook_id>/failed/retry",
    )
)  # fmt: skip
GAMES = (
    *(f"/proxy/api/gameSession/{what}" for what in ("getGsid", "getGsidResult", "closeGsid", "info")),
    "/game/<gsid>", "/game/<gsid>/continue", "/game/<gsid>/deny",
)  # fmt: skip
SOCKETS = ("/ws/gameSession/refresh/<gsid>",)
ROUTES = (
    "/", "/login", "/login/code", "/login/code/resend", "/logout", "/account", "/account/password", "/account/totp",
    "/account/totp/code", "/account/totp/confirm", "/account/totp/remove", "/account/code",
    "/account/email-2fa", "/account/games/end",
    "/account/sessions/end", "/account/sessions/end-others", "/account/delete", "/account/email",
    "/account/email/cancel", "/account/email/notices", "/account/email/undo", "/account/email/verify", "/account/enrol",
    "/account/export",
    "/account/history", "/account/identities/link", "/account/identities/unlink", "/account/keys/remove",
    "/account/passkeys",
    "/account/passkeys/remove", "/account/passkeys/rename", "/account/profile", "/account/recovery-codes",
    "/account/recovery-codes/download", "/account/terms", "/brand/accent-<colour>.css", "/brand/logo-<name>",
    "/brand/theme-<name>.css", "/docs", "/docs/", "/docs/<path:name>", "/docs/api", "/docs/api/<operation_id>",
    "/openapi.json", "/email/change", "/email/undo", "/email/verify", "/impersonate", "/account/impersonation/end",
    "/forgot", "/language", "/login/code/passkey", "/login/identity", "/login/identity/create", "/login/identity/link",
    "/login/identity/conflict", "/login/identity/conflict/merge", "/login/identity/conflict/move",
    "/login/keep", "/login/passkey", "/login/upstream/<provider_id>", "/login/upstream/<provider_id>/callback",
    "/register", "/register/code", "/register/complete", "/reset", "/device",
    "/proxy/api/login", "/proxy/api/logout", "/proxy/api/guest", "/proxy/api/ticket", "/proxy/api/data/<link>",
    "/healthz", "/readyz", "/static/<path:filename>",
    *KEYS, *OAUTH, *PERMISSIONS, *AUTHZEN, *SIGNALS, *ADMIN, *GAMES,
)  # fmt: skip
# Forms, and the login operation. OAuth, permissions and games test their own routes.
POSTS = tuple(
    path
    for path in ROUTES
    if path
    not in (
        "/",
        "/account",
        "/account/enrol",
        "/account/history",
        "/language",
        "/docs",
        "/docs/",
        "/docs/api",
        "/docs/api/<operation_id>",
        "/openapi.json",
        "/login/identity",
        "/login/identity/conflict",
        "/proxy/api/guest",  # it does not exist while guests are off
        "/healthz",
        "/readyz",
        *KEYS,
        *OAUTH,
        *PERMISSIONS,
        *AUTHZEN,
        *SIGNALS,
        *ADMIN,
        *GAMES,
    )
    and "<" not in path
)
# Each worker builds the document when it is first asked, which takes long: tests/openapi/test_document.py.
OF_THE_DOCUMENT = {"/openapi.json", "/docs/api", "/docs/api/<operation_id>"}
CHEAP_ROUTES = tuple(path for path in ROUTES if path not in OF_THE_DOCUMENT)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "X")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def signed_in(server: Server) -> Iterator[Browser]:
    """A browser with a session, which all tests share: refused forms change nothing."""
    with fresh_browser(server, new_user(server)) as browser:
        browser.open_account()
        yield browser


@pytest.fixture(scope="module")
def app() -> Quart:
    """The application without a database."""
    return build_app(offline_services(), Health(), Metrics())


def test_list_of_routes_is_complete(app: Quart) -> None:
    # Of the console: tests/console/test_rights.py.
    rules = [rule for rule in app.url_map.iter_rules() if not rule.rule.startswith("/console")]
    assert {rule.rule for rule in rules if not rule.websocket} == set(ROUTES)
    assert {rule.rule for rule in rules if rule.websocket} == set(SOCKETS)


def test_fixed_rules_agree_with_the_router(app: Quart) -> None:
    assert isinstance(app, FastQuart)
    router = app.url_map.bind("")
    assert len(app.fixed_rules) > 100
    for (method, path), rule in app.fixed_rules.items():
        assert router.match(path, method, return_rule=True) == (rule, {})


def one_of_each_kind(server: Server, signed_in: Browser) -> dict[str, httpx.Response]:
    """Returns one response of each kind, by a name that contains its status."""
    with server.client() as client, Browser(server) as owing, Game(server) as game:
        owing.sign_in(new_user(server, totp_secret=TOTP_SECRET))
        session = game.register(distr="steam")
        return {
            "sign in": client.get("/login"),
            "sign in, refused": owing.sign_in("nobody@example.com", "x"),
            "code": owing.follow(owing.sign_in(new_user(server, totp_secret=TOTP_SECRET))),
            "account": signed_in.get("/account"),
            "set up an app": signed_in.get("/account/totp"),
            "sign in to a game": client.get(session.page),
            "game": signed_in.get(session.decision),
            "410": client.get("/?gsid=x"),
            "redirect": client.get("/account"),
            "400": client.post("/login", content=b"%", headers={"Content-Type": FORM}),
            "403": client.post("/login", data={}),
            "404": client.get("/nothing"),
            "405": client.put("/login"),
            "413": client.post("/login", content=b"a" * 300_000, headers={"Content-Type": FORM}),
            "415": client.post("/login", json={}),
            "416": client.get("/static/sso.css", headers={"Range": "bytes=999999-"}),
            "431": client.get("/login", headers={"X-Long": "a" * 40_000}),
            "options": client.options("/login"),
            "style": client.get("/static/sso.css"),
            "picture": client.get("/static/logo.svg"),
            "keys": client.get(KEYS[0]),
            "health": client.get("/healthz"),
            "data 401": client.post("/proxy/api/login", json={"login": "nobody@example.com", "password": "x"}),
            "data of a game": game.get_gsid(),
            "data 403": game.ask("getGsidResult", "x"),
            "data 404": client.get("/proxy/api/nothing"),
            "data 413": client.post("/proxy/api/login", content=b"a" * 300_000),
        }


@pytest.fixture(scope="module")
def responses(server: Server, signed_in: Browser) -> dict[str, httpx.Response]:
    return one_of_each_kind(server, signed_in)


def test_responses_have_the_status_in_their_name(responses: dict[str, httpx.Response]) -> None:
    for name, response in responses.items():
        for number in re.findall(r"\d+", name):
            assert response.status_code == int(number), name


def test_no_response_may_be_framed_sniffed_or_cached(responses: dict[str, httpx.Response]) -> None:
    for name, response in responses.items():
        assert response.headers["X-Frame-Options"] == "DENY", name
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"], name
        assert response.headers["X-Content-Type-Options"] == "nosniff", name
        expected = {"style": "public, max-age=3600", "picture": "public, max-age=3600", "keys": "public, max-age=10"}
        assert response.headers["Cache-Control"] == expected.get(name, "no-store"), name


def test_pages_forbid_inline_scripts(responses: dict[str, httpx.Response]) -> None:
    pages = {name: response for name, response in responses.items() if "html" in response.headers["Content-Type"]}
    assert len(pages.keys() - {"431"}) == 16  # the built-in server rejects a head that is too long before it parses it
    for name, response in pages.items():
        assert response.headers["Content-Security-Policy"] == POLICY, name
        text = OWN_SCRIPTS.sub("", response.text)
        assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=|javascript:", text), name
    for name, response in responses.items():
        assert "unsafe" not in response.headers["Content-Security-Policy"], name
        assert name in pages or response.headers["Content-Security-Policy"].startswith("default-src 'none'"), name


def test_referrer_is_not_sent_to_other_sites(responses: dict[str, httpx.Response]) -> None:
    """Pages without a form send none. A form needs "same-origin": otherwise browsers would not send its origin."""
    for name, response in responses.items():
        if response.text:
            expected = "same-origin" if "<form" in response.text else "no-referrer"
            assert response.headers["Referrer-Policy"] == expected, name


def test_plain_http_has_no_hsts_header(responses: dict[str, httpx.Response]) -> None:
    assert not [name for name, response in responses.items() if "Strict-Transport-Security" in response.headers]


def test_no_response_names_the_server_software(responses: dict[str, httpx.Response]) -> None:
    for name, response in responses.items():
        assert "Server" not in response.headers, name
        assert "X-Powered-By" not in response.headers, name
        assert not re.search(r"Traceback|werkzeug|quart|asyncpg|\.py\b", response.text), name


def part_of(paths: tuple[str, ...], number: int, count: int) -> Sequence[str]:
    """Returns one of ``count`` parts of the paths, which are all paths together; in a long run all paths."""
    return usual_part(paths, -(-len(paths) // count), number)


ORIGINS = (("GET", "https://evil.example"), ("POST", "null"), ("OPTIONS", "https://evil.example"), ("OPTIONS", "null"))


@pytest.mark.parametrize("number", range(len(ORIGINS)))
def test_foreign_origins_get_no_cors_headers(client: httpx.Client, number: int) -> None:
    method, origin = ORIGINS[number]
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x"}
    for path in part_of((*CHEAP_ROUTES, "/nothing", "/proxy/api/nothing", "/static/sso.css"), number, len(ORIGINS)):
        if path.startswith("/.well-known/oauth-protected-resource"):
            continue  # public, without credentials
        response = client.request(method, path, headers=headers)
        cors = {name: value for name, value in response.headers.items() if name.startswith("access-control-")}
        assert cors == {}, path


HOSTS = ("evil.example", "evil.example:80", "evil.example<script>")


@pytest.mark.parametrize("number", range(len(HOSTS)))
def test_refused_host_is_never_repeated(server: Server, number: int) -> None:
    with Browser(server, headers={"Host": HOSTS[number]}) as browser:
        for path in (*part_of(ROUTES, number, len(HOSTS)), "//login", "/nothing"):
            assert_not_repeated(browser.get(path))
        assert_not_repeated(browser.http.post("/login", data={}))
        assert_not_repeated(browser.http.post("/proxy/api/login", json={}))


FORWARDING = (
    {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "evil.example", "X-Forwarded-Prefix": "/evil.example"},
    {
        "Forwarded": 'host="evil.example";proto=https',
        "X-Original-URL": "/evil.example",
        "X-Rewrite-URL": "/evil.example",
    },
)


@pytest.mark.parametrize("number", range(len(FORWARDING)))
def test_host_and_forwarding_headers_are_never_repeated(server: Server, number: int) -> None:
    login = new_user(server)
    with Browser(server, headers=FORWARDING[number]) as browser:
        for path in (*part_of(CHEAP_ROUTES, number, len(FORWARDING)), "//login", "/nothing"):
            assert_not_repeated(browser.get(path))
        browser.get("/login")
        fields = browser.form("/login") | {"login": login, "password": PASSWORD}
        entered = browser.http.post("/login", data=fields)
        assert entered.headers["Location"] == "/account"
        assert_not_repeated(entered)
        assert_not_repeated(browser.get("/account"))
        api = {"login": login, "password": PASSWORD, "factor": "x"}
        assert_not_repeated(browser.http.post("/proxy/api/login", json=api))


def test_absolute_request_target_is_never_repeated(server: Server) -> None:
    for target in (
        "http://evil.example/login",
        "http://evil.example/",
        "http://evil.example//login",
        "//evil.example/login",
    ):
        response = raw(server, f"GET {target} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode())
        assert response.startswith(b"HTTP/1.1 ")
        assert b"evil.example" not in response


def assert_not_repeated(response: httpx.Response) -> None:
    assert "evil.example" not in str(response.headers)
    assert "evil.example" not in response.text


def raw(server: Server, request: bytes) -> bytes:
    """Returns everything that the server sends until it closes the connection."""
    host, port = server.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


HEAD = b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"GET /\xff" + HEAD, {400}),
        (b"GET /login?next=\xff" + HEAD, {400}),
        (b"GET /%ff%fe" + HEAD, {404}),
        (b"GET /%00" + HEAD, {404}),
        (b"GET /%zz" + HEAD, {404}),
        (b"GET /%" + HEAD, {404}),
        (b"GET /login?next=%ff%00&%zz=%" + HEAD, {200}),
        (b"GET /login?" + b"a=b&" * 5000 + HEAD, {400}),
        (b"GET /login/code?next=%ff" + HEAD, {303}),
        (b"GET /static/%00" + HEAD, {404}),
        (b"GET /static/" + b"a" * 4000 + HEAD, {404}),
        (b"GET /static/" + b"%C3%A9" * 90 + HEAD, {404}),
        (b"GET /static/../app.py" + HEAD, {404}),
        (b"GET /static/%2e%2e/headers.py" + HEAD, {404}),
        (b"GET /static/..%2f..%2fapp.py" + HEAD, {404}),
        (b"GET /static//etc/passwd" + HEAD, {404}),
        (b"GET /static/." + HEAD, {404}),
        (b"GET /" + b"a" * 20_000 + HEAD, {414}),
        (b"GET /login" + HEAD + b"X-Long: " + b"a" * 40_000 + b"\r\n", {431}),
        (b"GET /login" + HEAD + b"X: y\r\n" * 10_000, {431}),
        (b"GET /login" + HEAD + b"Cookie: sso_visit=\xff\xfe; sso_session=\x80; ;;=;a\r\n", {200}),
        (b"GET /account" + HEAD + b"Cookie: sso_session=" + b"a" * 9000 + b"\r\n", {303}),
        (b"GET /login" + HEAD + b"User-Agent: \xff\r\nAccept-Language: \xff\r\nOrigin: \xff\r\n", {200}),
        (b"GET /login" + HEAD + b"Host: second\r\n", {400}),
        (b"GET /login HTTP/1.1\r\n\r\n", {400}),
        (b"GET /login" + HEAD + b"A\x00: b\r\n", {400}),
        (b"GET /login" + HEAD + b"A : b\r\n", {400}),
        (b"GET /login HTTP/x\r\nHost: localhost\r\n", {400}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + HEAD, {400}),
        (b"GET /static/sso.css" + HEAD + b"Range: bytes=9-1,a\r\nIf-Modified-Since: \xff\r\n", {200, 416}),
        (b"GET /static/sso.css" + HEAD + b"If-None-Match: \xff\r\nIf-Range: \xff\r\n", {200}),
        (b"OPTIONS *" + HEAD, {404}),
        (b"CONNECT evil.example:443" + HEAD, {400, 404}),
    ],
)  # fmt: skip
def test_malformed_request_line_or_header_gets_an_error(server: Server, request_: bytes, expected: set[int]) -> None:
    response = raw(server, request_ + b"\r\n")
    assert status(response) in expected
    assert b"Traceback" not in response


SOCKET = b"Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize(("path", "expected"), [("/login", 405), ("/nothing", 404), ("/proxy/api/login", 405)])
def test_websocket_handshake_at_another_route_gets_an_error(server: Server, path: str, expected: int) -> None:
    response = raw(
        server, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n".encode() + SOCKET + b"\r\n"
    )
    assert status(response) == expected
    assert b"x-frame-options: DENY" in response


def test_closing_a_connection_is_announced(client: httpx.Client) -> None:
    """Also after a response that did not wait for the body: otherwise the next request would fail."""
    for number in range(50):
        assert client.request("PUT", "/login", content=b"x" * number).status_code == 405


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_connection_close_is_obeyed(server: Server, version: str) -> None:
    response = raw(server, f"GET /healthz HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert status(response) == 200


@pytest.mark.parametrize("name", BODIES)
def test_every_form_answers_an_invalid_body_with_an_error(server: Server, signed_in: Browser, name: str) -> None:
    """In a usual run, each body is sent to a sixth of the forms: one function reads all of them."""
    kind, content, expected = BODIES[name]
    cookies = f"{SESSION}={signed_in.cookie()}; {VISIT}={'A' * 43}"
    with server.client() as client:
        for path in part_of(POSTS, [*BODIES].index(name), 6):
            headers = [(b"Cookie", cookies.encode())] + ([(b"Content-Type", kind.encode("latin1"))] if kind else [])
            response = client.post(path, content=content, headers=headers)
            assert response.status_code in expected, path
            assert "Traceback" not in response.text
    assert signed_in.is_signed_in


ENCODINGS = ("gzip", "br, gzip")


@pytest.mark.parametrize("number", range(len(ENCODINGS)))
def test_compressed_body_gets_415(client: httpx.Client, number: int) -> None:
    headers = {"Content-Type": FORM, "Content-Encoding": ENCODINGS[number]}
    for path in part_of(POSTS, number, len(ENCODINGS)):
        assert client.post(path, content=b"csrf=x", headers=headers).status_code == 415, path


def test_declared_length_above_the_limit_gets_413_before_the_body_arrives(server: Server) -> None:
    for path in POSTS:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\nContent-Length: 1000000000\r\n\r\n"
        assert status(raw(server, head.encode())) == 413, path


def test_endless_chunked_body_gets_413(server: Server) -> None:
    piece = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    head = f"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\nTransfer-Encoding: chunked\r\n\r\n"
    host, port = server.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head.encode() + piece * 17)  # a little more than a megabyte
        assert status(connection.recv(65536)) == 413


def test_other_methods_get_405_with_allow(client: httpx.Client) -> None:
    """Only a few APIs have PUT, PATCH and DELETE, which a form cannot send. One of the methods in a usual run."""
    with_others = (*ADMIN, "/ssf/stream", "/proxy/oauth/register/<client_id>")
    for number, path in enumerate(ROUTES):
        others = {"PUT", "PATCH", "DELETE"} if path in with_others else set()
        methods = [name for name in ("PUT", "TRACE", "PATCH", "PROPFIND", "DELETE", "X") if name not in others]
        for method in usual_part(methods, 1, number):
            response = client.request(method, path)
            assert response.status_code == 405, (method, path)
            allowed = set(response.headers["Allow"].split(", "))
            assert {"OPTIONS"} < allowed <= {"GET", "HEAD", "POST", "OPTIONS"} | others, (method, path)


def test_unknown_form_fields_are_ignored(server: Server) -> None:
    login = new_user(server)
    with Browser(server) as browser:
        response = browser.sign_in(
            login, **{"user_id": "1", "is_admin": "1", "__class__": "x", "login.x": "y", "é🎮": "ü"}
        )
        assert response.status_code == 303


ODD = ["'; DROP TABLE users; --", "%_\\", "\u202e\U0001f3ae", "\r\n", "x" * 10_000, "{{7*7}}", "${7*7}"]


@pytest.mark.parametrize("value", ODD)
def test_unusual_text_in_fields_is_treated_as_text(server: Server, signed_in: Browser, value: str) -> None:
    fields = {"csrf": csrf_token(signed_in.cookie() or "")}
    # With a new password that is too short, the current one is not checked, and no failed attempt is counted.
    for path, more in {
        "/account/totp": {"setup": value, "otp": value},
        "/account/sessions/end": {"id": value},
        "/account/password": {"current_password": value, "new_password": "1", "repeat_password": "1"},
    }.items():
        response = signed_in.post(path, fields | more)
        assert response.status_code in (303, 422)
        assert value.strip() not in response.text or not value.strip()
    assert signed_in.get("/account", params={"done": value}).status_code == 200
    with Browser(server) as browser:
        assert browser.sign_in(value, value, next=value).status_code == 401
        assert "49" not in browser.form("/login")["login"]


def test_random_requests_cause_no_internal_error(server: Server, signed_in: Browser) -> None:
    chance, failed = random.Random(20), len(server.log_events("request.failed"))
    cookies = [
        f"{SESSION}={signed_in.cookie()}",
        f"{VISIT}={'A' * 43}",
        f"{SESSION}={'B' * 43}; {VISIT}=x",
        "",
        "=;;",
        "é=é",
    ]
    token = csrf_token(signed_in.cookie() or "")
    with server.client() as client:
        for number in range(2000 if IS_LONG_RUN else 200):
            method, path = chance.choice(METHODS), chance.choice(CHEAP_ROUTES)
            path = path.replace("<path:filename>", noise(chance)) + chance.choice(["", "", "/", "?" + noise(chance)])
            headers = [(b"Cookie", chance.choice(cookies).encode())]
            headers += [(name, chance.choice(VALUES)) for name in NAMES if chance.random() < 0.4]
            body = chance.choice([b"", noise(chance).encode(), form(chance, token), b"{" + form(chance, token)])
            request = client.build_request(method, "http://x/", content=body, headers=headers)
            request.url = client.base_url.copy_with(raw_path=path.encode())
            response = client.send(request)
            what = f"{number}: {method} {path} {headers} {body!r}"
            assert response.status_code < 500, what
            assert "Traceback" not in response.text, what
            assert response.headers["X-Frame-Options"] == "DENY", what
    assert signed_in.is_signed_in
    assert len(server.log_events("request.failed")) == failed


NAMES = (b"Content-Type", b"Origin", b"Sec-Fetch-Site", b"Accept", b"Range", b"X-Forwarded-For", b"If-None-Match")
VALUES = (
    FORM.encode(), b"application/json", b"text/html", b"\xff", b"null", b"https://evil.example", b"same-origin",
    b"cross-site", b"bytes=0-", b"bytes=-1", b"bytes=5-1", b"127.0.0.1", b"a" * 3000, b"*/*;q=x", b";;,,==",
)  # fmt: skip


def noise(chance: random.Random) -> str:
    return quote_from_bytes(b"".join(chance.choices(PIECES, k=chance.randint(0, 5))), safe="%/&=.")


def form(chance: random.Random, token: str) -> bytes:
    """Returns random form fields, but none that would end the session or count as a failed login."""
    names = ("next", "login", "otp", "id", "enable", "setup", "repeat_password", "csrf[]", "x")
    pairs = [f"{name}={noise(chance)}" for name in chance.sample(names, chance.randint(0, 4))]
    return "&".join([*pairs, f"csrf={chance.choice([token[:-1], '', noise(chance)])}"]).encode()
