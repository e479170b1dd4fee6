"""The readiness of a worker, with a shared database and with its own."""

import pytest
from quart_trio import QuartTrio

from sso.health import Health, health_routes
from tests.kit.open_database import open_database
from tests.kit.ports import free_port


async def status(path: str, dsn: str, *, shared: bool, draining: bool = False) -> int:
    app = QuartTrio(__name__)
    async with open_database(dsn, 2) as database:
        app.register_blueprint(health_routes(Health(draining=draining), database, shared_database=shared))
        return (await app.test_client().get(path)).status_code


@pytest.mark.parametrize("shared", [True, False])
async def test_worker_with_a_database_that_answers_is_ready(dsn: str, shared: bool) -> None:
    assert await status("/readyz", dsn, shared=shared) == 200
    assert await status("/readyz?database=1", dsn, shared=shared) == 200


async def test_worker_without_its_own_database_is_not_ready() -> None:
    assert await status("/readyz", unreachable(), shared=False) == 503
    assert await status("/healthz", unreachable(), shared=False) == 200


async def test_worker_without_the_shared_database_is_ready_unless_asked_for_the_database() -> None:
    assert await status("/readyz", unreachable(), shared=True) == 200
    assert await status("/readyz?database=0", unreachable(), shared=True) == 200
    assert await status("/readyz?database=1", unreachable(), shared=True) == 503


@pytest.mark.parametrize("shared", [True, False])
async def test_draining_worker_is_not_ready(dsn: str, shared: bool) -> None:
    assert await status("/readyz", dsn, shared=shared, draining=True) == 503


def unreachable() -> str:
    return f"postgresql://sso@127.0.0.1:{free_port()}/none"
