from collections.abc import Iterator

import pytest

from tests.kit import oauth
from tests.kit.server import Server
from tests.kit.shared_server import SharedServers
from tests.upstream import stand_ins
from tests.upstream.stand_ins import CodeProvider, SteamStandIn


@pytest.fixture(scope="module")
def server(shared_servers: SharedServers) -> Iterator[Server]:
    settings = {"SSO_RATE_LOGIN": "0", "SSO_RATE_UPSTREAM": "0"}
    settings |= {"SSO_REGISTRATION": "open", "SSO_REGISTRATION_CHALLENGE": "off"}
    with shared_servers.use(**settings) as server:
        yield server
        oauth.close_all()


@pytest.fixture
def provider() -> Iterator[CodeProvider]:
    provider = CodeProvider()
    with stand_ins.running(provider):
        yield provider


@pytest.fixture
def steam() -> Iterator[SteamStandIn]:
    steam = SteamStandIn()
    with stand_ins.running(steam):
        yield steam
