"""The limit of streams and long polls that one caller has open."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from sso.admin.changes import MAX_HELD
from tests.admin.conftest import Administrator
from tests.change_stream.conftest import newest_cursor, service_client_of
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until
from tests.perm.endpoints.conftest import Studio

EVENT_STREAM = {"Accept": "text/event-stream"}


@pytest.fixture(scope="module")
def studio(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """With one worker, because each worker counts its own requests."""
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1"}
    with running(tmp_path_factory.mktemp("held"), **settings) as server, server.client() as client:
        yield Studio(server, client)


def open_stream(clients: ExitStack, server: Server, caller: Administrator) -> httpx.Response:
    """Opens a stream with a connection of its own."""
    client = clients.enter_context(httpx.Client(base_url=server.base_url, timeout=60))
    headers = caller.headers | EVENT_STREAM
    return clients.enter_context(client.stream("GET", "/api/admin/changes", headers=headers))


def long_poll(caller: Administrator, after: str) -> httpx.Response:
    return caller.get("/changes", after=after, wait=1)


def test_caller_has_a_limit_of_streams_and_long_polls(studio: Studio) -> None:
    reader, root = service_client_of(studio.server, studio, studio.application()), Administrator.of(studio.root)
    after = newest_cursor(reader)
    with ExitStack() as clients:
        for _ in range(MAX_HELD - 1):
            assert open_stream(clients, studio.server, reader).status_code == 200
        assert long_poll(reader, after).status_code == 200
        with ExitStack() as last:
            assert open_stream(last, studio.server, reader).status_code == 200
            refused = open_stream(clients, studio.server, reader)
            assert refused.status_code == 429
            refused.read()
            assert_refused(refused)
            assert_refused(long_poll(reader, after))
            assert reader.get("/changes", after=after).status_code == 200  # not held
            assert long_poll(root, newest_cursor(root)).status_code == 200  # another caller
        assert until(lambda: long_poll(reader, after).status_code == 200)


def assert_refused(response: httpx.Response) -> None:
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["status"]) == (429, "ERROR")
    assert f"at most {MAX_HELD} at a time" in body["error"]
    assert int(response.headers["Retry-After"]) > 0
