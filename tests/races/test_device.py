"""Of many concurrent token requests of a device, exactly one gets tokens. SSO_TEST_ROUNDS=200 gives a long run."""

import os
from collections import Counter
from collections.abc import Iterator
from functools import partial

import httpx
import pytest
import trio
import trio.testing

from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.device import Device, confirm, new_device_site, start_device
from tests.kit.oauth import TOKEN, Site, close_all
from tests.kit.server import Server

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
WAIT = 3  # seconds for which a request is held, in every second round
pytestmark = [pytest.mark.timeout(120 + ROUNDS * 10), pytest.mark.two_workers]


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def tv(server: Server) -> Site:
    return new_device_site(server)


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    with fresh_browser(server, new_user(server)) as browser:
        yield browser


async def ask_concurrently(
    clients: list[httpx.AsyncClient], device: Device, wait: int, browser: Browser | None
) -> list[httpx.Response]:
    """Sends all requests at the same time; with a browser, the user confirms meanwhile."""
    responses: list[httpx.Response] = []
    form, go = device.form(wait=wait), trio.Event()

    async def one(client: httpx.AsyncClient) -> None:
        await go.wait()
        responses.append(await client.post(TOKEN, data=form))

    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(one, client)
        await trio.testing.wait_all_tasks_blocked()
        go.set()
        if browser:
            await trio.to_thread.run_sync(partial(confirm, browser, device))
    return responses


async def test_one_of_many_concurrent_requests_of_a_device_gets_tokens(
    server: Server, tv: Site, browser: Browser, clients: list[httpx.AsyncClient]
) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(ROUNDS):
        device = start_device(tv)
        if number % 2:
            responses = await ask_concurrently(clients, device, WAIT, browser)
            if not any(response.is_success for response in responses):  # the newest request was one too many
                responses.append(await trio.to_thread.run_sync(partial(device.ask, wait=WAIT)))
        else:
            await trio.to_thread.run_sync(confirm, browser, device)
            responses = await ask_concurrently(clients, device, 0, None)
        errors = [response.json()["error"] for response in responses if not response.is_success]
        outcomes.update(errors)
        assert len(responses) - len(errors) == 1, Counter(errors)
        assert set(errors) <= {"authorization_pending", "slow_down", "invalid_grant"}
        (won,) = (response.json() for response in responses if response.is_success)
        assert tv.userinfo(won["access_token"]).status_code == 200
        assert device.ask().json()["error"] == "invalid_grant"
        delete = "DELETE FROM oauth_grants WHERE client_id = $1 RETURNING id"
        grants = await trio.to_thread.run_sync(query, server, delete, tv.client_id)
        assert len(grants) == 1, "there is no second set of tokens that nobody has received"
    print(f"{ROUNDS} rounds: {dict(outcomes)}")
