from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.oauth import close_all
from tests.kit.postgres import Postgres
from tests.kit.server import Server, running
from tests.models.machine import ROUNDS, SETTINGS

TIMEOUT_S = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A failure is made shorter, which takes longer than a test."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(0 if ROUNDS else TIMEOUT_S))


@pytest.fixture(scope="package")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two workers, without rate limits, that holds a poll for a second."""
    settings = SETTINGS | {"SSO_DATABASE_URL": postgres_server.fresh()}
    with running(tmp_path_factory.mktemp("models"), **settings) as server:
        yield server
        close_all()
