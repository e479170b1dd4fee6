"""While one account does the most expensive thing that it may, others log in, poll and refresh, and root manages.

In a long run (scripts/faults) each request is sent for seconds, and the slowest of a hundred responses to the others is
printed. The usual run counts responses only.
"""

import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import trio
import trio_asyncio

from tests.faults.expensive_requests import EXPENSIVE_REQUESTS, GOOD_LOGIN, NO_HISTORY, ExpensiveRequest, Scene
from tests.kit.browser import new_user
from tests.kit.held import Answer, Connection, ask_once, new_address, new_game
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.oauth import TOKEN, close_all, new_browser, new_site
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running
from tests.perm.endpoints.conftest import FACTOR, Studio

CONNECTIONS = 50 if IS_LONG_RUN else 12  # of the account; the worker has 8 connections to the database
LONG_S = 10.0
TIMES = 1  # how often the others do each thing in the usual run
NO_LIMITS = {f"SSO_RATE_{name}": "0" for name in ("LOGIN", "ADMIN", "AUTHORIZE", "ACCOUNT")}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One worker without limits of requests, so that all requests come to the same connections of the database."""
    dsn = postgres_server.fresh()
    settings = QUICK | NO_LIMITS | {"SSO_DATABASE_URL": dsn, "SSO_WORKERS": "1", "SSO_GSID_HOLD_S": "1"}
    with running(tmp_path_factory.mktemp("expensive"), **settings) as server:
        yield server
    close_all()
    postgres_server.drop(dsn)


@pytest.fixture(scope="module")
def scene(server: Server) -> Iterator[Scene]:
    with server.client() as client:
        yield Scene.create(server, Studio(server, client))


class Others:
    """A user, a game, a web site and root, and how long each of their requests took."""

    def __init__(self, server: Server, scene: Scene) -> None:
        self._server = server
        self._login = new_user(server)
        self._root = {"Authorization": f"Bearer {scene.studio.root.jwt}", "Factor": FACTOR}
        self._application_id = scene.studio.application()
        self._site = new_site(server, first_party=True)
        self._refresh_token = self._site.tokens(new_browser(server).sign_in())["refresh_token"]
        self._numbers = itertools.count(1)
        self.seconds: dict[str, list[float]] = {}

    async def log_in(self) -> None:
        await self._ask("login", "/proxy/api/login", {"login": self._login, **GOOD_LOGIN})

    async def poll(self) -> None:
        game = await new_game(self._server)
        answer = await game.poll()
        assert answer.outcome == "RETRY", answer

    async def refresh(self) -> None:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": self._refresh_token,
            "redirect_uri": self._site.redirect_uri,
        }
        answer = await self._ask("refresh", TOKEN, form, self._site.bearer())
        self._refresh_token = answer.data["refresh_token"]

    async def look(self) -> None:
        await self._ask("list of root", "/api/admin/users?limit=10", None, self._root)

    async def change(self) -> None:
        role = {"name": f"r{next(self._numbers) % 10}", "condition": {"tag": f"t{next(self._numbers)}"}}
        save = {"action": "save", "application_id": self._application_id, "data": role}
        await self._ask("write of root", "/api/permissions/roles", save, self._root)

    async def _ask(
        self, what: str, path: str, body: dict[str, Any] | None, headers: dict[str, str] | None = None
    ) -> Answer:
        began = time.monotonic()
        async with await Connection.open(self._server, new_address()) as connection:
            answer = await connection.ask(path, body, headers)
        assert answer.status == 200, (what, answer)
        self.seconds.setdefault(what, []).append(time.monotonic() - began)
        return answer

    async def work(self, is_over: Callable[[], bool], *, may_write: bool = True) -> None:
        """Does everything until ``is_over``, each thing in a task of its own."""

        async def repeat(function: Callable[[], Awaitable[None]]) -> None:
            while True:
                await function()
                if is_over():
                    return

        async with trio.open_nursery() as nursery:
            changes = (self.change,) if may_write else ()
            for function in (self.log_in, self.log_in, self.poll, self.refresh, self.look, *changes):
                nursery.start_soon(repeat, function)

    def report(self, name: str) -> None:
        figures = ", ".join(
            f"{what} {sorted(values)[int(len(values) * 0.99)] * 1000:.0f} ms ({len(values)})"
            for what, values in self.seconds.items()
        )
        print(f"\n{name}: slowest of a hundred: {figures}")
        self.seconds.clear()


@pytest.fixture(scope="module")
def others(server: Server, scene: Scene) -> Others:
    return Others(server, scene)


@asynccontextmanager
async def blocking(server: Server, statement: str) -> AsyncIterator[None]:
    """Keeps a transaction with this statement open within the block."""
    async with trio_asyncio.open_loop():
        connection = await trio_asyncio.aio_as_trio(asyncpg.connect)(server.settings["SSO_DATABASE_URL"])
        run = trio_asyncio.aio_as_trio(connection.execute)
        try:
            await run(f"BEGIN; {statement}")
            yield
            await run("ROLLBACK")
        finally:
            await trio_asyncio.aio_as_trio(connection.close)()


async def send_all(server: Server, scene: Scene, request: ExpensiveRequest) -> list[Connection]:
    connections = [await Connection.open(server) for _ in range(CONNECTIONS)]
    for number, connection in enumerate(connections):
        built = request.build(scene, number)
        await connection.send(built.path, built.body, built.headers)
    return connections


async def check_alone(server: Server, scene: Scene, request: ExpensiveRequest) -> None:
    """The request does what it is named after."""
    built = request.build(scene, CONNECTIONS)
    answer = await ask_once(server, built.path, built.body, built.headers)
    assert answer.status == request.status, (request.name, answer)


async def attack(server: Server, scene: Scene, request: ExpensiveRequest) -> None:
    """Sends the request over and over on all connections, until the caller cancels it."""
    numbers = itertools.count()

    async def repeat() -> None:
        while True:
            built = request.build(scene, next(numbers))
            check(request, await ask_once(server, built.path, built.body, built.headers))

    async with trio.open_nursery() as nursery:
        for _ in range(CONNECTIONS):
            nursery.start_soon(repeat)


def check(request: ExpensiveRequest, answer: Answer) -> None:
    """The account itself may be told to wait, and nothing else fails."""
    assert answer.status < 500 or (answer.status == 503 and answer.headers["retry-after"]), (request.name, answer)


# Every second kind in the usual run.
@pytest.mark.parametrize("request_", EXPENSIVE_REQUESTS[:: 1 if IS_LONG_RUN else 2], ids=lambda request: request.name)
async def test_requests_of_one_account_leave_connections_to_others(
    server: Server, scene: Scene, others: Others, request_: ExpensiveRequest
) -> None:
    ends = time.monotonic() + LONG_S
    if IS_LONG_RUN:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(attack, server, scene, request_)
            await others.work(lambda: time.monotonic() > ends)
            nursery.cancel_scope.cancel()
        others.report(request_.name)
        return
    await check_alone(server, scene, request_)
    done = itertools.count(1)
    statement = request_.blocked_by.format(**vars(scene)) or "SELECT 1"
    async with blocking(server, statement):
        connections = await send_all(server, scene, request_)
        await others.work(lambda: next(done) > 5 * TIMES, may_write=request_.blocked_by != NO_HISTORY)
    for connection in connections:
        check(request_, await connection.receive())
        await connection.close()
