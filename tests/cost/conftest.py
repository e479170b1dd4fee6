"""The metered server, and those who send requests to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest

from sso.log import configure_logging
from tests.cost.callers import Caller, Records, create_callers
from tests.cost.cost_log import CostLog
from tests.cost.metered_server import MeteredServer
from tests.kit import postgres
from tests.kit.server import NO_LIMITS, QUICK
from tests.perm.endpoints.conftest import Studio


@dataclass(frozen=True)
class World:
    server: MeteredServer
    client: httpx.Client
    studio: Studio
    callers: dict[str, Caller]
    records: Records
    log: CostLog = field(default_factory=CostLog)


@pytest.fixture(autouse=True)
def _log() -> None:
    """Each test restores the configuration at its end."""
    configure_logging("json", "warning")


@pytest.fixture(scope="module")
def metered(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeteredServer]:
    dsn = postgres_server.fresh()
    settings = QUICK | NO_LIMITS | {"SSO_DATABASE_URL": dsn, "SSO_GSID_HOLD_S": "1"}
    server = MeteredServer(tmp_path_factory.mktemp("metered"), settings)
    configure_logging("json", "warning")
    server.start()
    yield server
    server.stop()
    postgres_server.drop(dsn)


@pytest.fixture(scope="module")
def world(metered: MeteredServer) -> Iterator[World]:
    with metered.client() as client:
        studio = Studio(metered, client)
        callers, records = create_callers(metered, studio)
        world = World(metered, client, studio, {caller.name: caller for caller in callers}, records)
        yield world
        world.log.write()
