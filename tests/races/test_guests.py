"""Of many concurrent requests with one device key, one creates the guest, and one uses a nonce."""

from collections import Counter

import httpx
import pytest
import trio

from tests.kit.browser import query
from tests.kit.guest import GUEST, Device
from tests.kit.server import Server
from tests.players.conftest import server  # noqa: F401 - the fixture of a server that accepts guests
from tests.races.conftest import CONCURRENT

pytestmark = pytest.mark.timeout(120)


async def post_all(clients: list[httpx.AsyncClient], device: Device, bodies: list[bytes]) -> list[httpx.Response]:
    answers: list[httpx.Response] = []

    async def send(client: httpx.AsyncClient, body: bytes) -> None:
        answers.append(await client.post(GUEST, content=body, headers=device.headers(body)))

    async with trio.open_nursery() as nursery:
        for client, body in zip(clients, bodies, strict=True):
            nursery.start_soon(send, client, body)
    return answers


async def test_first_calls_of_one_key_make_one_guest(clients: list[httpx.AsyncClient], server: Server) -> None:  # noqa: F811
    device = Device()
    answers = await post_all(clients, device, [device.body() for _ in range(CONCURRENT)])
    assert Counter(answer.status_code for answer in answers) == {200: CONCURRENT}
    assert len({answer.json()["user_id"] for answer in answers}) == 1
    counts = "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM device_keys)"
    assert tuple((await trio.to_thread.run_sync(query, server, counts))[0]) == (1, 1)


async def test_a_request_is_accepted_once(clients: list[httpx.AsyncClient]) -> None:
    device = Device()
    for _ in range(2):  # before and after the guest exists
        answers = await post_all(clients, device, [device.body()] * CONCURRENT)
        assert Counter(answer.status_code for answer in answers) == {200: 1, 403: CONCURRENT - 1}
