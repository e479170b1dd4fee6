from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sso.bus.bus import Bus
from sso.config import Settings
from sso.db.database import Database
from tests.bus import nats_settings, running_bus
from tests.kit.nats import NatsServer, nats_server, needs_nats


@pytest.fixture(scope="session")
def shared_nats() -> Iterator[NatsServer]:
    with nats_server() as server:
        yield server


@pytest.fixture(params=["postgres", pytest.param("nats", marks=needs_nats)])
def bus_settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    if request.param == "postgres":
        return Settings(data_dir=tmp_path)
    return nats_settings(request.getfixturevalue("shared_nats").url)


@pytest.fixture(autouse=True)
def no_rescan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only messages signal, not the regular rescan."""
    monkeypatch.setattr("sso.bus.bus.RESCAN_S", 3600.0)


@pytest.fixture
async def sender(database: Database, bus_settings: Settings) -> AsyncIterator[Bus]:
    async with running_bus(database, bus_settings) as bus:
        yield bus


@pytest.fixture
async def receiver(database: Database, bus_settings: Settings) -> AsyncIterator[Bus]:
    async with running_bus(database, bus_settings) as bus:
        yield bus
