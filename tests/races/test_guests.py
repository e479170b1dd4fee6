"""Guests, links and merges, many at a time: each happens once, and nothing is lost on the way."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
import trio

from tests.admin.conftest import Administrator
from tests.kit.browser import VISIT, Browser, new_user, query, user_id_of
from tests.kit.builders import PASSWORD
from tests.kit.game import Game
from tests.kit.guest import FACTOR, GUEST, Device, bearer
from tests.kit.registration import mailed_link, mails_to, new_address, request_mail
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio
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


@pytest.fixture
def root(server: Server) -> Iterator[Administrator]:  # noqa: F811
    with server.client() as client:
        yield Administrator.of(Studio(server, client).root)


def send_all(server: Server, requests: list[dict[str, Any]]) -> list[httpx.Response]:  # noqa: F811
    """Sends the requests at the same time, each with its own connection. Returns the answers in their order."""
    answers: dict[int, httpx.Response] = {}

    async def send(client: httpx.AsyncClient, number: int) -> None:
        answers[number] = await client.request(**requests[number])

    async def run() -> None:
        async with AsyncExitStack() as stack:
            new = [httpx.AsyncClient(base_url=server.base_url, timeout=60) for _ in requests]
            clients = [await stack.enter_async_context(client) for client in new]
            async with trio.open_nursery() as nursery:
                for client in clients:
                    nursery.start_soon(client.get, "/healthz")
            async with trio.open_nursery() as nursery:
                for number, client in enumerate(clients):
                    nursery.start_soon(send, client, number)

    trio.run(run)
    return [answers[number] for number in range(len(requests))]


def new_account(server: Server) -> str:  # noqa: F811
    return user_id_of(server, new_user(server))


async def test_first_calls_of_one_key_make_one_guest(clients: list[httpx.AsyncClient], server: Server) -> None:  # noqa: F811
    device = Device()
    counts = "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM device_keys)"
    before = (await trio.to_thread.run_sync(query, server, counts))[0]
    answers = await post_all(clients, device, [device.body() for _ in range(CONCURRENT)])
    assert Counter(answer.status_code for answer in answers) == {200: CONCURRENT}
    assert len({answer.json()["user_id"] for answer in answers}) == 1
    after = (await trio.to_thread.run_sync(query, server, counts))[0]
    assert [new - old for old, new in zip(before, after, strict=True)] == [1, 1]


async def test_a_request_is_accepted_once(clients: list[httpx.AsyncClient]) -> None:
    device = Device()
    for _ in range(2):  # before and after the guest exists
        answers = await post_all(clients, device, [device.body()] * CONCURRENT)
        assert Counter(answer.status_code for answer in answers) == {200: 1, 403: CONCURRENT - 1}


def test_one_link_session_upgrades_its_guest_once(server: Server) -> None:  # noqa: F811
    address, device = new_address(), Device()
    with server.client() as client, Game(server) as game, Browser(server) as browser:
        guest = device.sign_in(client)
        session = game.register(bearer(guest), link="1", factor=FACTOR)
        request_mail(browser, address, f"/register?next={session.page.replace('?', '%3F')}")
        browser.get(mailed_link(mails_to(server, address)[0]))
        form = browser.form("/register/complete") | {"nick": "Ann", "password": PASSWORD}
        sent = {"method": "POST", "url": "/register/complete", "data": form}
        headers = {"Cookie": f"{VISIT}={browser.cookie(VISIT)}"}
        answers = send_all(server, [sent | {"headers": headers}] * CONCURRENT)
        assert Counter(answer.status_code for answer in answers)[303] == 1
        rows = query(server, "SELECT user_id FROM users WHERE lower(login) = lower($1)", address)
        assert [row["user_id"] for row in rows] == [guest["user_id"]]
        events = query(
            server, "SELECT FROM change_events WHERE type = 'user_upgraded' AND user_id = $1", guest["user_id"]
        )
        assert len(events) == 1


def test_a_guest_is_merged_into_one_of_many_accounts(server: Server, root: Administrator) -> None:  # noqa: F811
    device = Device()
    with server.client() as client:
        guest = device.sign_in(client)["user_id"]
        accounts = [new_account(server) for _ in range(5)]
        sent: list[dict[str, Any]] = [
            {
                "method": "POST",
                "url": f"/api/admin/users/{guest}/merge",
                "json": {"into": accounts[number % len(accounts)]},
                "headers": root.headers,
            }
            for number in range(CONCURRENT)
        ]
        answers = send_all(server, sent)
        statuses = Counter(answer.status_code for answer in answers)
        assert statuses == {200: 1, 409: CONCURRENT - 1}, statuses
        winner = sent[[answer.status_code for answer in answers].index(200)]["json"]["into"]
        assert device.sign_in(client)["user_id"] == winner
        assert len(query(server, "SELECT FROM device_keys WHERE user_id = ANY ($1)", [guest, *accounts])) == 1


def test_merges_and_deletions_leave_a_player_or_nothing(server: Server, root: Administrator) -> None:  # noqa: F811
    """A guest that was merged is erased with the account. One that was not stays as it was."""
    device = Device()
    with server.client() as client:
        guest, account = device.sign_in(client)["user_id"], new_account(server)
        merge = {"method": "POST", "url": f"/api/admin/users/{guest}/merge", "json": {"into": account}}
        delete = {"method": "DELETE", "url": f"/api/admin/users/{account}", "params": {"now": "1"}}
        sent = [{**(merge if number % 2 else delete), "headers": root.headers} for number in range(CONCURRENT)]
        answers = send_all(server, sent)
        assert {answer.status_code for answer in answers} <= {200, 400, 404, 409}
        merged = any(answer.status_code == 200 for answer in answers[1::2])
        assert not query(server, "SELECT FROM users WHERE user_id = $1", account)
        assert len(query(server, "SELECT FROM users WHERE user_id = $1", guest)) == (0 if merged else 1)
        assert (device.sign_in(client)["user_id"] == guest) is not merged
