"""Servers that require a second factor."""

from collections.abc import Iterator

import pytest

from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

SETTINGS = QUICK | {"SSO_RATE_LOGIN": "0", "SSO_REGISTRATION": "open", "SSO_REGISTRATION_CHALLENGE": "off"}


@pytest.fixture(scope="module")
def strict(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Administrators must have a second factor."""
    settings = SETTINGS | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_REQUIRE_2FA": "admins"}
    with running(tmp_path_factory.mktemp("strict"), **settings) as server:
        server.keep_services_open()
        yield server


@pytest.fixture(scope="module")
def strictest(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Everybody must have a second factor, and everybody can register."""
    settings = SETTINGS | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_REQUIRE_2FA": "all"}
    with running(tmp_path_factory.mktemp("strictest"), **settings) as server:
        server.keep_services_open()
        yield server
