"""The metrics listener: counts of all workers, and limits for its clients."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.kit.device import new_device_site, start_device
from tests.kit.game import BASE, Game
from tests.kit.oauth import close_all
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until

HEALTHZ_COUNT = 'sso_request_seconds_count{method="GET",route="/healthz",status="200"}'


@pytest.fixture(scope="module")
def metered(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2", "SSO_METRICS_BIND": bind}
    with running(tmp_path_factory.mktemp("metered"), **settings) as server:
        yield server, bind


def test_metrics_count_the_requests_of_all_workers(metered: tuple[Server, str]) -> None:
    server, bind = metered
    for _ in range(8):
        with server.client() as client:
            assert client.get("/healthz").status_code == 200
    response = httpx.get(f"http://{bind}/metrics", timeout=60)
    assert (response.status_code, response.headers["Content-Type"].split(";")[0]) == (200, "text/plain")
    # The listener may send what it has collected a moment before.
    assert until(lambda: (metric(bind, HEALTHZ_COUNT) or 0) >= 8)


def test_metrics_are_served_beside_idle_and_unfinished_connections(metered: tuple[Server, str]) -> None:
    _, bind = metered
    host, _, port = bind.rpartition(":")
    with ExitStack() as stack:
        for sent in (b"", b"GET /met", b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"):
            other = stack.enter_context(socket.create_connection((host, int(port))))
            other.sendall(sent)
        assert httpx.get(f"http://{bind}/metrics", timeout=60).status_code == 200


def test_metrics_listener_rejects_other_paths_methods_and_long_heads(metered: tuple[Server, str]) -> None:
    _, bind = metered
    with httpx.Client(base_url=f"http://{bind}", timeout=60) as client:
        assert client.get("/").status_code == 404
        assert client.post("/metrics").status_code == 405
        assert client.head("/metrics").content == b""
        assert client.get("/metrics", headers={"X": "a" * 40_000}).status_code == 431
        assert client.get("/metrics", headers={f"X-{number}": "a" for number in range(200)}).status_code == 431


def test_metrics_listener_has_a_limit_of_connections_per_address(metered: tuple[Server, str]) -> None:
    _, bind = metered
    host, _, port = bind.rpartition(":")
    with ExitStack() as stack:
        others = [stack.enter_context(socket.create_connection((host, int(port)), timeout=60)) for _ in range(65)]
        assert others[-1].recv(100).startswith(b"HTTP/1.1 429 ")


def metric(bind: str, name: str) -> float | None:
    """Returns the value of a metric."""
    lines = httpx.get(f"http://{bind}/metrics", timeout=60).text.splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")]
    return values[0] if values else None


def test_held_token_requests_have_a_route_of_their_own(metered: tuple[Server, str]) -> None:
    """Otherwise, devices that wait for their users look like a slow token endpoint."""
    server, bind = metered
    device = start_device(new_device_site(server))
    assert device.ask().status_code == 400
    assert device.ask(wait=1).status_code == 400
    for route in ("/proxy/oauth/token", "/proxy/oauth/token?wait"):
        name = f'sso_request_seconds_count{{method="POST",route="{route}",status="400"}}'
        assert until(lambda name=name: metric(bind, name) == 1)
    close_all()


def test_gauges_are_the_sum_over_live_workers(metered: tuple[Server, str]) -> None:
    server, bind = metered
    assert until(lambda: metric(bind, "sso_sockets") == 0)
    assert until(lambda: metric(bind, "sso_database_circuit_open") == 0)
    with ExitStack() as stack:
        for _ in range(3):
            send_poll(stack, server)
        assert until(lambda: metric(bind, "sso_held_polls") == 3)
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)  # a killed worker leaves its gauges behind
        assert until(lambda: metric(bind, "sso_held_polls") == 0)


def send_poll(stack: ExitStack, server: Server) -> None:
    """Registers a game session and sends a poll, which the server holds."""
    game = stack.enter_context(Game(server))
    body = b'{"gsid":"%b"}' % game.register().gsid.encode()
    host, _, port = server.base_url.removeprefix("http://").partition(":")
    poll = stack.enter_context(socket.create_connection((host, int(port)), source_address=(game.address, 0)))
    head = f"POST {BASE}/getGsidResult HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    poll.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
