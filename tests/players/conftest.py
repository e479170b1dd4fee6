from collections.abc import Iterator

import httpx
import pytest

from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

GUESTS = QUICK | {"SSO_GUESTS": "on", "SSO_RATE_GUEST": "0", "SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0"}


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two workers that accepts guests."""
    dsn = postgres_server.fresh()
    more = {"SSO_DATABASE_URL": dsn, "SSO_REGISTRATION": "open", "SSO_REGISTRATION_CHALLENGE": "off"}
    with running(tmp_path_factory.mktemp("players"), **GUESTS | more) as server:
        server.keep_services_open()
        yield server
    postgres_server.drop(dsn)


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.base_url, timeout=60) as client:
        yield client
