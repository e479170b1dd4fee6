from collections.abc import Iterator

import pytest

from tests.kit.browser import Browser
from tests.kit.server import QUICK, Server
from tests.kit.shared_server import SharedServers

OPEN = QUICK | {
    "SSO_REGISTRATION": "open",
    "SSO_REGISTRATION_WORK_BITS": "4",
    "SSO_RATE_REGISTER": "0",
    "SSO_RATE_LOGIN": "0",
}


@pytest.fixture(scope="module")
def open_server(shared_servers: SharedServers) -> Iterator[Server]:
    """A server where everybody can register, with an easy puzzle."""
    with shared_servers.use(**OPEN) as server:
        yield server


@pytest.fixture
def browser(open_server: Server) -> Iterator[Browser]:
    with Browser(open_server) as browser:
        yield browser
