"""The table "Limits of routes" of the documentation: its rate limits and sizes of bodies are those of the service."""

import http.client
import itertools
import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from scripts.reference_tables.route_limits import FAMILIES, body_limits, family_of, offline_services, usual_limit
from sso.app import build_app
from sso.health import Health
from sso.serve.server_limits import ServerLimits
from sso.telemetry.metrics import Metrics
from tests.deploy.proxies import DEPLOY
from tests.kit.browser import AuthenticatorApp, Browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.guest import Device
from tests.kit.oauth import AUTHORIZE, new_site
from tests.kit.password_reset import ask_for_link, mailed_link, open_link
from tests.kit.postgres import Postgres
from tests.kit.registration import new_address, request_mail
from tests.kit.server import QUICK, Server, running
from tests.kit.signals import signal_client
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio

LIMIT = 2
NAMES = (
    "LOGIN",
    "ACCOUNT",
    "AUTHORIZE",
    "USER_CODE",
    "ADMIN",
    "GETGSID",
    "UPSTREAM",
    "REGISTER",
    "GUEST",
    "CLIENT_REGISTRATION",
)
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def limited(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_WORKERS": "1",
        "SSO_REGISTRATION": "open",
        "SSO_GUESTS": "on",
        "SSO_CLIENT_REGISTRATION": "token",
    }
    settings |= {f"SSO_RATE_{name}": str(LIMIT) for name in NAMES} | {"SSO_REGISTRATION_CHALLENGE": "off"}
    with running(tmp_path_factory.mktemp("limits"), **QUICK | settings) as server:
        yield server


class Requests:
    """One request of each family and setting of the table, from an address of its own."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport = httpx.HTTPTransport(local_address=f"127.88.0.{next(_numbers)}", verify=False)
        self.http = server.client(transport=self.transport)

    def browser(self) -> Browser:
        return Browser(self.server, transport=self.transport)

    def user(self) -> ApiUser:
        return Studio.user(_StudioOf(self.server, self.http))  # type: ignore[arg-type]

    def form(self, page: str, action: str, **fields: str) -> Callable[[], httpx.Response]:
        browser = self.browser()

        def send() -> httpx.Response:
            browser.get(page)
            return browser.submit(action, **fields)

        return send

    def login(self, password: str) -> Callable[[], httpx.Response]:
        login = self.user().login
        return lambda: self.http.post("/proxy/api/login", json={"login": login, "password": password})

    def ticket(self) -> Callable[[], httpx.Response]:
        """Tickets that do not have the form of their kind; no store is asked."""
        record = {"id": "game-center", "kind": "game_center", "client_id": "com.example.game"}
        self.server.apply({"identity_providers": [record]})
        body = {"provider": "game-center", "ticket": "wrong"}
        return lambda: self.http.post("/proxy/api/ticket", json=body)

    def permissions(self) -> Callable[[], httpx.Response]:
        user = self.user()
        headers = {"Authorization": f"Bearer {user.jwt}", "Factor": FACTOR}
        return lambda: self.http.post("/api/permissions/audit", json={}, headers=headers)

    def authzen(self) -> Callable[[], httpx.Response]:
        """An evaluation with its reason. Without, it is one of the frequent reads, which are not limited."""
        user = self.user()
        headers = {"Authorization": f"Bearer {user.jwt}", "Factor": FACTOR}
        body = {
            "subject": {"type": "user", "id": user.user_id},
            "action": {"name": "x"},
            "resource": {"type": "application", "id": "1"},
            "context": {"reason": True},
        }
        return lambda: self.http.post("/access/v1/evaluation", json=body, headers=headers)

    def console(self) -> Callable[[], httpx.Response]:
        user, browser = self.user(), self.browser()
        Studio.give_roles(_StudioOf(self.server, self.http), user, "root")  # type: ignore[arg-type]
        assert browser.sign_in(user.login).status_code == 303
        return lambda: browser.get("/console/users")

    def reset_code(self) -> Callable[[], httpx.Response]:
        """Wrong codes of a second factor; one guess is counted like a failed login."""
        login, browser = new_user(self.server, totp_secret=TOTP_SECRET), self.browser()
        ask_for_link(browser, login)
        open_link(browser, mailed_link(self.server, login))
        new = "a new long password 17"
        fields = {"new_password": new, "repeat_password": new, "otp": AuthenticatorApp(TOTP_SECRET).wrong()}
        return lambda: browser.submit("/reset", **fields)

    def authorize(self) -> Callable[[], httpx.Response]:
        site = new_site(self.server)
        return lambda: self.http.get(AUTHORIZE, params=site.query())


class _StudioOf:
    """The part of a studio that creates users."""

    def __init__(self, server: Server, client: httpx.Client) -> None:
        self.server, self.client = server, client


SENDERS: dict[tuple[str, str], Callable[[Requests], Callable[[], httpx.Response]]] = {
    ("/access", "ADMIN"): Requests.authzen,
    ("/api/admin", "ADMIN"): lambda requests: lambda: requests.http.get("/api/admin/users"),
    ("/api/permissions", "ADMIN"): Requests.permissions,
    ("/console", "ADMIN"): Requests.console,
    ("/device", "USER_CODE"): lambda requests: requests.form("/device", "/device", user_code="BBBB-BBBB"),
    ("/forgot", "LOGIN"): lambda requests: requests.form("/forgot", "/forgot", login="nobody@example.com"),
    ("/login", "LOGIN"): lambda requests: requests.form("/login", "/login", login="a@b.example", password="x"),
    ("/login", "ACCOUNT"): lambda requests: requests.login(PASSWORD),
    ("/login/upstream", "UPSTREAM"): lambda requests: lambda: requests.http.get("/login/upstream/x/callback?state=x"),
    ("/proxy/api/login", "LOGIN"): lambda requests: requests.login("wrong"),
    ("/proxy/api/login", "ACCOUNT"): lambda requests: requests.login(PASSWORD),
    ("/proxy/api/ticket", "LOGIN"): Requests.ticket,
    ("/proxy/api/gameSession", "GETGSID"): lambda requests: (
        lambda: requests.http.post("/proxy/api/gameSession/getGsid", json={})
    ),
    ("/proxy/api/guest", "GUEST"): lambda requests: lambda: Device().call(requests.http),
    ("/proxy/oauth", "AUTHORIZE"): Requests.authorize,
    ("/proxy/oauth/register", "CLIENT_REGISTRATION"): lambda requests: (
        lambda: requests.http.post("/proxy/oauth/register", json={"redirect_uris": ["https://a.example.com/"]})
    ),
    ("/register", "REGISTER"): lambda requests: lambda: request_mail(requests.browser(), new_address()),
    ("/reset", "LOGIN"): Requests.reset_code,
}


def named_limits() -> set[tuple[str, str]]:
    return {
        (prefix, name) for prefix, family in FAMILIES.items() for name in re.findall(r"SSO_RATE_(\w+)", family.rate)
    }


def test_every_rate_limit_of_the_table_is_tried() -> None:
    assert named_limits() == SENDERS.keys()


@pytest.mark.parametrize(("family", "setting"), sorted(SENDERS))
def test_setting_limits_the_routes_of_the_family(limited: Server, family: str, setting: str) -> None:
    send = SENDERS[family, setting](Requests(limited))
    statuses = [send().status_code for _ in range(LIMIT + 1)]
    assert statuses[0] != 429, statuses
    assert statuses[-1] == 429, statuses


def test_no_route_accepts_more_than_the_limit_of_its_body(server: Server) -> None:
    """The length is declared and the body not sent, so that the response says what the route would read.

    One route of each family and limit must refuse it for its length; others may ask for something else first.
    """
    studio = Studio(server, server.client())
    api = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR, "Content-Type": "application/json"}
    browser = Browser(server)
    browser.sign_in(studio.root.login)
    cookies = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
    page = {"Cookie": cookies, "Origin": server.base_url, "Content-Type": "application/x-www-form-urlencoded"}
    receiver = {**signal_client(server).headers(), "Content-Type": "application/json"}
    tried: dict[tuple[str, int], list[int]] = {}
    services = offline_services()
    special = body_limits(services)
    for rule in build_app(services, Health(), Metrics()).url_map.iter_rules():
        # While guests and registrations of clients are off, their routes do not read their bodies.
        off = ("/proxy/api/guest", "/proxy/oauth/register")
        if "POST" in (rule.methods or ()) and "<" not in rule.rule and rule.rule not in off:
            limit = special.get(("POST", rule.rule))
            max_bytes = limit.max_bytes if limit else usual_limit(rule.rule)
            statuses = tried.setdefault((family_of(rule.rule), max_bytes), [])
            if 413 in statuses:
                continue
            headers = api if rule.rule.startswith(("/access/", "/api/", "/proxy/")) else page
            headers = receiver if rule.rule.startswith("/ssf/") else headers
            statuses.append(declare(server, rule.rule, max_bytes + 1, headers))
    assert {key: statuses for key, statuses in tried.items() if 413 not in statuses} == {}


def test_server_and_samples_of_proxies_let_the_largest_body_through() -> None:
    largest = max(limit.max_bytes for limit in body_limits(offline_services()).values())
    assert ServerLimits().max_body_bytes > largest
    samples = {"nginx/sso.conf": r"client_max_body_size (\d+)m;", "caddy/Caddyfile": r"max_size (\d+)MiB"}
    samples |= dict.fromkeys(("kubernetes/sso.yaml", "helm/values.yaml"), r"proxy-body-size: (\d+)m")
    for name, pattern in samples.items():
        (megabytes,) = re.findall(pattern, (DEPLOY / name).read_text())
        assert int(megabytes) << 20 >= largest, name


def declare(server: Server, path: str, length: int, headers: dict[str, str]) -> int:
    address = urlsplit(server.base_url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request("POST", path, headers=headers | {"Content-Length": str(length)})
    status = connection.getresponse().status
    connection.close()
    return status
