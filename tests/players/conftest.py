from collections.abc import Iterator

import httpx
import pytest

from tests.kit.server import QUICK, Server
from tests.kit.shared_server import SharedServers

GUESTS = QUICK | {"SSO_GUESTS": "on", "SSO_RATE_GUEST": "0", "SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0"}


@pytest.fixture(scope="module")
def server(shared_servers: SharedServers) -> Iterator[Server]:
    """A server with two workers that accepts guests."""
    with shared_servers.use(**GUESTS, SSO_REGISTRATION="open", SSO_REGISTRATION_CHALLENGE="off") as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.base_url, timeout=60) as client:
        yield client
