"""Limits by network and minute: authorization requests without a session, pushed ones, and typed codes of devices."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from sso.core.keys import GENERATE, public_jwk
from tests.kit.browser import query
from tests.kit.client_assertions import KEYS, assertion, fields
from tests.kit.device import new_device_site, start_device
from tests.kit.oauth import AUTHORIZE, PAR, Site, error_of, new_browser, new_site, pkce
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

LIMIT = 2
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def limited(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2"}
    settings |= {"SSO_RATE_AUTHORIZE": str(LIMIT), "SSO_RATE_USER_CODE": str(LIMIT), "SSO_TRUSTED_PROXIES": "127.0.0.1"}
    with running(tmp_path_factory.mktemp("rate"), **settings) as server:
        yield server


@pytest.fixture(scope="module")
def shop(limited: Server) -> Site:
    return new_site(limited)


@pytest.fixture
def address() -> str:
    return f"203.0.113.{next(_numbers)}"


def get(server: Server, address: str, path: str, parameters: dict[str, str], cookie: str = "") -> httpx.Response:
    """Sends a request on a new connection, so that any worker may respond."""
    with server.client() as client:
        return client.get(path, params=parameters, headers={"X-Forwarded-For": address, "Cookie": cookie})


def ask(site: Site, address: str, cookie: str = "", /, **changes: str | None) -> httpx.Response:
    """Sends an authorization request without a session."""
    return get(site.server, address, AUTHORIZE, site.query(**changes), cookie)


def test_authorize_requests_without_session_are_limited_exactly_when_parallel(shop: Site, address: str) -> None:
    (before,) = query(shop.server, "SELECT count(*) FROM oauth_requests")
    with ThreadPoolExecutor(10) as pool:
        responses = list(pool.map(lambda _: ask(shop, address), range(20)))
    assert sorted(response.status_code for response in responses) == [200] * LIMIT + [429] * (20 - LIMIT)
    (after,) = query(shop.server, "SELECT count(*) FROM oauth_requests")
    assert after["count"] - before["count"] == LIMIT


def test_refused_authorize_request_is_a_page_and_other_networks_are_not_affected(shop: Site, address: str) -> None:
    for _ in range(LIMIT):
        assert ask(shop, address).status_code == 200
    refused = ask(shop, address)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["Content-Type"].startswith("text/html")
    assert "wait a minute" in refused.text
    assert "Location" not in refused.headers
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


def test_requests_of_a_signed_in_user_that_lead_to_a_page_are_limited(shop: Site, limited: Server) -> None:
    browser, other = new_browser(limited).sign_in(), new_browser(limited).sign_in()
    pages = [browser.authorize(shop, prompt=prompt).status_code for prompt in ("login", "select_account", "login")]
    assert pages == [200] * LIMIT + [429]
    assert browser.authorize(shop).status_code == 302
    assert other.authorize(shop, prompt="login").status_code == 200


def test_made_up_session_cookie_does_not_evade_the_limit(shop: Site, address: str) -> None:
    for number in range(LIMIT + 1):
        last = ask(shop, address, f"sso_session={'x' * 42}{number}")
    assert last.status_code == 429


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "unknown"},
        {"redirect_uri": "https://evil.example/"},
        {"client_id": None},
        {"scope": "openid unknown"},
        {"response_type": "token"},
    ],
)
def test_invalid_requests_count_as_well(shop: Site, address: str, changes: dict[str, str | None]) -> None:
    """They are answered with a page or, for a known client and redirect URI, with a redirect there."""
    for _ in range(LIMIT):
        assert ask(shop, address, **changes).status_code in (302, 400)
    assert ask(shop, address, **changes).status_code == 429


def test_zero_switches_the_limit_off(site: Site) -> None:
    assert site.server.settings["SSO_RATE_AUTHORIZE"] == "0"
    for _ in range(20):
        assert ask(site, "127.0.0.1").status_code == 200


def push(site: Site, headers: dict[str, str], **changes: str) -> httpx.Response:
    return site.http.post(PAR, data=site.query(**changes), headers=headers)


def test_pushed_requests_are_limited(limited: Server) -> None:
    """By network if the client does not authenticate, otherwise by client and with ten times the number."""
    site, public = new_site(limited, profile="oidc"), new_site(limited, public=True, profile="oidc")
    challenge = {"code_challenge": pkce()[1], "code_challenge_method": "S256"}
    assert [push(public, {}, **challenge).status_code for _ in range(LIMIT + 1)] == [201] * LIMIT + [429]
    refused = push(site, site.basic("wrong"))
    assert error_of(refused) == (429, "temporarily_unavailable")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    own = site.basic()
    assert [push(site, own).status_code for _ in range(10 * LIMIT + 1)] == [201] * 10 * LIMIT + [429]


def test_failed_authentications_of_pushed_requests_are_limited(limited: Server, address: str) -> None:
    """Those that fail before the client is read count as well. The client itself is not affected."""
    jwks = {"keys": [public_jwk(KEYS["ES256"].public_key(), "key-ES256")]}
    app = new_site(limited, public=True, profile="oidc", token_endpoint_auth_method="private_key_jwt", jwks=jwks)
    sender = {"X-Forwarded-For": address}
    wrong_signature = fields(assertion(app, key=GENERATE["ES256"]()))
    assert error_of(push(app, sender, **wrong_signature)) == (401, "invalid_client")
    assert error_of(push(app, sender | {"Authorization": "Basic ?"})) == (401, "invalid_client")
    assert error_of(push(app, sender, client_id="no id")) == (429, "temporarily_unavailable")
    refused = push(app, sender, **fields(assertion(app, key=GENERATE["ES256"]())))
    assert error_of(refused) == (429, "temporarily_unavailable")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert push(app, sender, **fields(assertion(app))).status_code == 201


def guess(server: Server, address: str) -> httpx.Response:
    return get(server, address, "/device", {"user_code": "BBBB-BBBB"})


def test_guesses_are_limited_by_address_exactly_when_parallel(limited: Server, address: str) -> None:
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: guess(limited, address), range(20)))
    assert sorted(answer.status_code for answer in answers) == [404] * LIMIT + [429] * (20 - LIMIT)
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["Retry-After"]) > 0
    assert "Too many attempts" in refused.text
    assert guess(limited, f"203.0.113.{next(_numbers)}").status_code == 404, "other addresses are not affected"


def test_right_code_is_not_accepted_beyond_the_limit(limited: Server, address: str) -> None:
    device = start_device(new_device_site(limited))
    for _ in range(LIMIT):
        guess(limited, address)
    answer = get(limited, address, "/device", {"user_code": device.user_code})
    assert answer.status_code == 429
    assert device.gsid not in answer.text
