from collections.abc import AsyncIterator

import httpx
import pytest
import trio

from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.server import Server

CONCURRENT = 50 if IS_LONG_RUN else 15


@pytest.fixture
async def clients(server: Server) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Clients with one open connection each, which the two workers share."""
    assert len(server.workers()) == 2
    clients = [httpx.AsyncClient(base_url=server.base_url, timeout=60) for _ in range(CONCURRENT)]
    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(client.get, "/healthz")
    yield clients
    for client in clients:
        await client.aclose()
