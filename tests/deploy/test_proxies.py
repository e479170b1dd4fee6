"""The proxy samples of ``deploy/``, tried with the real programs."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deploy.proxies import HOST, Proxy, installed, proxied
from tests.kit.browser import new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.game import BASE
from tests.kit.postgres import Postgres
from tests.kit.server import until

# nginx is tried with both HTTP servers of the service.
PAIRS = [("nginx", "builtin"), ("nginx", "hypercorn"), ("haproxy", "builtin"), ("caddy", "builtin")]
PROXIES = [
    pytest.param(
        pair,
        id="-".join(pair),
        marks=pytest.mark.skipif(
            not installed(pair[0]), reason=f"{pair[0]} is not installed: run scripts/deploy-check"
        ),
    )
    for pair in PAIRS
]


@pytest.fixture(scope="module", params=PROXIES)
def proxy(
    request: pytest.FixtureRequest, postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    name, http = request.param
    folder = tmp_path_factory.mktemp(name)
    # A poll is held for longer than a test waits, so that one which ends has another reason.
    settings = {"SSO_HTTP": http, "SSO_TRUSTED_PROXIES": "127.0.0.1", "SSO_GSID_HOLD_S": "100"}
    with proxied(name, postgres_server, folder, **settings) as proxy:
        yield proxy


def register(client: httpx.Client, **headers: str) -> dict[str, Any]:
    answer = client.post(f"{BASE}/getGsid", json={}, headers=headers)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def address_of(proxy: Proxy, gsid: str) -> str:
    (row,) = query(proxy.server, "SELECT address FROM game_sessions WHERE gsid = $1", gsid)
    return str(row["address"])


def test_client_address_passes_the_proxy_and_cannot_be_forged(proxy: Proxy) -> None:
    with proxy.client("127.0.0.9") as client:
        assert address_of(proxy, register(client)["gsid"]) == "127.0.0.9"
        forged = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1"}
        gsid = register(client, **forged)["gsid"]
        assert address_of(proxy, gsid) == "127.0.0.9"
        assert client.post(f"{BASE}/info", json={"gsid": gsid}, headers=forged).status_code == 403
    assert proxy.server.log_events("proxy.forwarding_header_ignored") == []


def test_player_signs_in_through_the_proxy(proxy: Proxy) -> None:
    login = new_user(proxy.server)
    with proxy.client() as client:
        page = client.get("/login")
        token = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert token
        cookies = {"Cookie": page.headers["Set-Cookie"].partition(";")[0], "Origin": f"https://{HOST}"}
        form = {"csrf": token[1], "login": login, "password": PASSWORD}
        answer = client.post("/login", data=form, headers=cookies)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/account")


def test_websocket_opens_through_the_proxy(proxy: Proxy) -> None:
    with proxy.client() as client:
        gsid = register(client)["gsid"]
    key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    upgrade = f"Connection: Upgrade\r\nUpgrade: websocket\r\n{key}"
    path = f"/ws/gameSession/refresh/{gsid}"
    assert proxy.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{upgrade}\r\n").startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize("path", ["/login", "/ws/gameSession/refresh/x"])
def test_client_gets_no_clear_text_http2_through_the_proxy(proxy: Proxy, path: str) -> None:
    upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    answer = proxy.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{upgrade}\r\n")
    assert answer.startswith(b"HTTP/1.1 ")
    assert not answer.startswith(b"HTTP/1.1 101")


def test_unknown_host_does_not_reach_a_page_through_the_proxy(proxy: Proxy) -> None:
    answer = proxy.send("GET /login HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    # The service refuses it; Caddy answers itself, with an empty body.
    assert answer.startswith(b"HTTP/1.1 400") or answer.endswith(b"\r\n\r\n"), answer[:200]


@pytest.mark.parametrize("path", ["//login", "/%2flogin", "/%6cogin"])
def test_other_spellings_of_a_path_reach_no_page_through_the_proxy(proxy: Proxy, path: str) -> None:
    answer = proxy.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 404"), answer[:200]


def test_forgotten_trusted_proxies_setting_does_not_open_info(postgres_server: Postgres, tmp_path: Path) -> None:
    if not installed("nginx"):
        pytest.skip("nginx is not installed: run scripts/deploy-check")
    with proxied("nginx", postgres_server, tmp_path) as proxy, proxy.client("127.0.0.9") as client:
        gsid = register(client)["gsid"]
        assert address_of(proxy, gsid) == "127.0.0.1"
        assert client.post(f"{BASE}/info", json={"gsid": gsid}).status_code == 403
        (event,) = until(lambda: proxy.server.log_events("proxy.forwarding_header_ignored"))
        assert event["peer"] == "127.0.0.1"
        assert "SSO_TRUSTED_PROXIES" in event["advice"]


def test_held_poll_is_answered_through_the_proxy_when_the_session_is_closed(proxy: Proxy) -> None:
    with proxy.client() as waiting, proxy.client() as other, ThreadPoolExecutor(1) as executor:
        gsid = register(waiting)["gsid"]
        poll = executor.submit(waiting.post, f"{BASE}/getGsidResult", json={"gsid": gsid})
        until(lambda: query(proxy.server, "SELECT 1 FROM game_sessions WHERE gsid = $1 AND poll > 0", gsid))
        assert not poll.done()
        closed = other.post(f"{BASE}/closeGsid", json={"gsid": gsid, "status": "Success"})
        assert closed.status_code == 200, closed.text
        assert poll.result(timeout=30).json() == {"status": "ERROR", "error": "session closed"}


def test_poll_ends_when_its_client_leaves_the_proxy(proxy: Proxy) -> None:
    def held_polls() -> int:
        return int(query(proxy.server, "SELECT sum(held_polls) AS polls FROM node_workers")[0]["polls"])

    with proxy.client() as client:
        body = json.dumps({"gsid": register(client)["gsid"]})
    head = f"POST {BASE}/getGsidResult HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    with proxy.connection() as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        assert until(held_polls) == 1
    assert until(lambda: held_polls() == 0)
