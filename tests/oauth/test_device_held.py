"""Held token requests of devices, over two workers: the parameter wait."""

from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlencode

import pytest
import trio

from tests.kit.browser import Browser, fresh_browser, new_user
from tests.kit.device import Device, confirm, refuse, start_device
from tests.kit.held import Answer, Connection, Rows, connect, rows_of
from tests.kit.oauth import TOKEN, Site
from tests.kit.server import Server

pytestmark = pytest.mark.two_workers

HOLD = 25  # seconds; a request that is answered by its end, and not at once, fails the test
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    with fresh_browser(server, new_user(server)) as browser:
        yield browser


@pytest.fixture
async def rows(server: Server) -> AsyncIterator[Rows]:
    async with rows_of(server) as rows:
        yield rows


async def hold(server: Server, device: Device, rows: Rows, worker: int | None = None) -> Connection:
    """Sends a request that is held, and returns its connection."""
    before = (await rows.get(device.gsid))["poll"]
    connection = await connect(server, worker=worker)
    await connection.send(TOKEN, urlencode(device.form(wait=HOLD)).encode(), FORM)
    await rows.until_polled(device.gsid, before + 1)
    return connection


async def answer_at_once(connection: Connection) -> Answer:
    async with connection:
        with trio.fail_after(HOLD - 5):
            return await connection.receive()


async def test_held_request_on_any_worker_is_answered_when_the_user_confirms(
    server: Server, tv: Site, browser: Browser, rows: Rows
) -> None:
    for worker in server.workers():
        device = start_device(tv)
        connection = await hold(server, device, rows, worker)
        await trio.to_thread.run_sync(confirm, browser, device)
        answer = await answer_at_once(connection)
        assert answer.status == 200, answer
        assert tv.userinfo(answer.data["access_token"]).status_code == 200
        assert device.ask().status_code == 400


async def test_held_request_is_answered_when_the_user_refuses(
    server: Server, tv: Site, browser: Browser, rows: Rows
) -> None:
    device = start_device(tv)
    connection = await hold(server, device, rows)
    await trio.to_thread.run_sync(refuse, browser, device)
    assert (await answer_at_once(connection)).data["error"] == "access_denied"


async def test_newer_request_ends_the_hold_of_the_older_one(
    server: Server, tv: Site, browser: Browser, rows: Rows
) -> None:
    device = start_device(tv)
    older = await hold(server, device, rows, server.workers()[0])
    newer = await hold(server, device, rows, server.workers()[1])
    assert (await answer_at_once(older)).data["error"] == "authorization_pending"
    await trio.to_thread.run_sync(confirm, browser, device)
    assert (await answer_at_once(newer)).status == 200


async def test_tokens_are_kept_for_a_device_that_has_disconnected(
    server: Server, tv: Site, browser: Browser, rows: Rows
) -> None:
    device = start_device(tv)
    connection = await hold(server, device, rows)
    connection.reset()
    await trio.to_thread.run_sync(confirm, browser, device)
    connection = await hold(server, device, rows)
    assert (await answer_at_once(connection)).status == 200
    grants = await rows.run("SELECT id FROM oauth_grants WHERE id = $1", (await rows.get(device.gsid))["grant_id"])
    assert len(grants) == 1
