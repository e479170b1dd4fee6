"""Authorization requests without a session are limited by network and minute (SSO_RATE_AUTHORIZE), on both servers."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.kit.browser import query
from tests.kit.oauth import AUTHORIZE, Site, new_browser, new_site
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

LIMIT = 5
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def limited(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2"}
    settings |= {"SSO_RATE_AUTHORIZE": str(LIMIT), "SSO_TRUSTED_PROXIES": "127.0.0.1"}
    with running(tmp_path_factory.mktemp("rate"), **settings) as server:
        yield server


@pytest.fixture(scope="module")
def shop(limited: Server) -> Site:
    return new_site(limited)


@pytest.fixture
def address() -> str:
    return f"203.0.113.{next(_numbers)}"


def ask(site: Site, address: str, **changes: str | None) -> httpx.Response:
    """Sends an authorization request without a session on a new connection, so that any worker may respond."""
    headers = {"X-Forwarded-For": address}
    return httpx.get(site.server.base_url + AUTHORIZE, params=site.query(**changes), headers=headers, timeout=60)


def test_authorize_requests_without_session_are_limited_exactly_when_parallel(shop: Site, address: str) -> None:
    (before,) = query(shop.server, "SELECT count(*) FROM oauth_requests")
    with ThreadPoolExecutor(10) as pool:
        responses = list(pool.map(lambda _: ask(shop, address), range(30)))
    assert sorted(response.status_code for response in responses) == [200] * LIMIT + [429] * (30 - LIMIT)
    (after,) = query(shop.server, "SELECT count(*) FROM oauth_requests")
    assert after["count"] - before["count"] == LIMIT


def test_refused_authorize_request_is_a_page_with_retry_after(shop: Site, address: str) -> None:
    for _ in range(LIMIT):
        assert ask(shop, address).status_code == 200
    refused = ask(shop, address)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["Content-Type"].startswith("text/html")
    assert "wait a minute" in refused.text
    assert "Location" not in refused.headers


def test_other_networks_are_not_affected(shop: Site, address: str) -> None:
    for _ in range(LIMIT + 1):
        last = ask(shop, address)
    assert last.status_code == 429
    assert ask(shop, f"203.0.113.{next(_numbers)}").status_code == 200


def test_ipv6_addresses_of_one_64_network_share_the_limit(shop: Site) -> None:
    network = f"2001:db8:{next(_numbers)}"
    for number in range(LIMIT):
        assert ask(shop, f"{network}::{number + 1}").status_code == 200
    assert ask(shop, f"{network}::ffff:1").status_code == 429
    assert ask(shop, f"{network}:1::1").status_code == 200


def test_signed_in_browser_is_not_limited(shop: Site, limited: Server) -> None:
    browser = new_browser(limited).sign_in()
    for _ in range(LIMIT + 3):
        assert browser.authorize(shop).status_code == 302


def test_made_up_session_cookie_does_not_evade_the_limit(shop: Site, address: str) -> None:
    for number in range(LIMIT + 1):
        cookie = {"Cookie": f"sso_session={'x' * 42}{number}", "X-Forwarded-For": address}
        last = httpx.get(shop.server.base_url + AUTHORIZE, params=shop.query(), headers=cookie, timeout=60)
    assert last.status_code == 429


@pytest.mark.parametrize(
    "changes", [{"client_id": "unknown"}, {"redirect_uri": "https://evil.example/"}, {"client_id": None}]
)
def test_requests_of_unknown_clients_count_as_well(shop: Site, address: str, changes: dict[str, str | None]) -> None:
    for _ in range(LIMIT):
        assert ask(shop, address, **changes).status_code == 400
    assert ask(shop, address, **changes).status_code == 429


def test_zero_switches_the_limit_off(site: Site) -> None:
    assert site.server.settings["SSO_RATE_AUTHORIZE"] == "0"
    for _ in range(20):
        assert ask(site, "127.0.0.1").status_code == 200
