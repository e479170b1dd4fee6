from collections.abc import Iterator

import pytest

from tests.kit.browser import Browser
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

OPEN = QUICK | {
    "SSO_REGISTRATION": "open",
    "SSO_REGISTRATION_WORK_BITS": "4",
    "SSO_RATE_REGISTER": "0",
    "SSO_RATE_LOGIN": "0",
    "SSO_WORKERS": "2",
}


@pytest.fixture(scope="module")
def open_server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server where everybody can register, with an easy puzzle."""
    settings = OPEN | {"SSO_DATABASE_URL": postgres_server.fresh()}
    with running(tmp_path_factory.mktemp("open"), **settings) as server:
        server.keep_services_open()
        yield server


@pytest.fixture
def browser(open_server: Server) -> Iterator[Browser]:
    with Browser(open_server) as browser:
        yield browser
