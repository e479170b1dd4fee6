from collections.abc import AsyncIterator, Iterator

import pytest

from tests.kit.browser import Browser, fresh_browser, new_user
from tests.kit.game import Game
from tests.kit.held import Player, Rows, rows_of
from tests.kit.server import TWO_WORKERS, Server
from tests.kit.shared_server import SharedServers

META = {"geo": "DE", "registration": "web"}
HEARTBEAT_S = 1
# A test may change those from 19 on.
APPLICATIONS = {
    "applications": [
        {"application_id": 10, "name": "Tanks"},
        {"application_id": 11, "name": "Tanks Studio"},
        {"application_id": 12, "name": "Closed"},
        {"application_id": 13, "name": "<img src=x onerror=alert(1)>"},
        {"application_id": 19, "name": "Old"},
        {"application_id": 20, "name": "Soon closed"},
        {"application_id": 21, "name": "Inside"},
        {"application_id": 22, "name": "Service"},
        {"application_id": 23, "name": "Other service"},
    ],
    "schemas": {
        "10": {"private_data": {"chat": {"mute": {"value": True}}}},
        "11": {"public_data": {"skin": {"value": "red"}}},
        "12": {"login": {"cannot": {"value": True}}},
    },
}


@pytest.fixture(scope="module")
def server(shared_servers: SharedServers) -> Iterator[Server]:
    """A server with two workers that holds a poll for one second."""
    with shared_servers.use(APPLICATIONS, **TWO_WORKERS, SSO_GSID_HOLD_S="1") as server:
        yield server


@pytest.fixture
def game(server: Server) -> Iterator[Game]:
    with Game(server) as game:
        yield game


@pytest.fixture
def other(server: Server) -> Iterator[Game]:
    """A game at another address."""
    with Game(server) as game:
        yield game


@pytest.fixture(scope="module")
def ann(server: Server) -> str:
    """The login of the user Ann."""
    return new_user(server, user_id="1001", country="DE", lang="en", level="3", tags=["beta", "eu"], meta=META)


@pytest.fixture(scope="module")
def browser(server: Server, ann: str) -> Iterator[Browser]:
    """A browser where Ann is signed in; tests must not sign her out."""
    with fresh_browser(server, ann) as browser:
        yield browser


@pytest.fixture(scope="module")
def quick_sockets(shared_servers: SharedServers) -> Iterator[Server]:
    """A server with two workers and a short heartbeat interval, which holds a poll longer than a test takes."""
    settings = {"SSO_RATE_LOGIN": "0", "SSO_GSID_HOLD_S": "60", "SSO_GSID_HEARTBEAT_S": str(HEARTBEAT_S)}
    with shared_servers.use(**TWO_WORKERS, **settings) as server:
        yield server


@pytest.fixture(scope="module")
def player(server: Server) -> Player:
    """A new user of the module's server."""
    return Player(server, new_user(server))


@pytest.fixture
async def rows(server: Server) -> AsyncIterator[Rows]:
    """The rows of the module's server."""
    async with rows_of(server) as rows:
        yield rows
