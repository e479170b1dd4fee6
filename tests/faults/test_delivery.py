"""A login whose answer the game has read is not handed out again, whatever the game does with its connection then.

A usual run has a few logins of each kind; SSO_TEST_ROUNDS (scripts/faults) has a thousand of each, and runs them behind
haproxy as well, if it is installed.
"""

import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from tests.faults import serving
from tests.kit.browser import new_user
from tests.kit.held import Connection, Game, Player, begin_polls, new_games
from tests.kit.long_tests import IS_LONG_RUN, takes_long
from tests.kit.ports import free_port
from tests.kit.postgres import Postgres
from tests.kit.server import Server, until

LOGINS, AT_ONCE = (1000, 50) if IS_LONG_RUN else (10, 10)
SETTINGS = {"SSO_RATE_GETGSID": "0", "SSO_GSID_HOLD_S": "60", "SSO_TRUSTED_PROXIES": "127.0.0.0/8"}
HAPROXY = """
global
    maxconn 2000
defaults
    mode http
    timeout connect 10s
    timeout client 90s
    timeout server 90s
frontend games
    bind 127.0.0.1:{port}
    option forwardfor
    default_backend sso
backend sso
    server one {server}
"""
pytestmark = pytest.mark.timeout(1200 if IS_LONG_RUN else 180)


@dataclass
class Proxy:
    base_url: str


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    with serving(tmp_path_factory.mktemp("delivery"), SSO_DATABASE_URL=dsn, **SETTINGS) as server:
        yield server
    postgres_server.drop(dsn)


@contextmanager
def haproxy(server: Server, folder: Path) -> Iterator[Proxy]:
    port = free_port()
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(port=port, server=server.base_url.removeprefix("http://")))
    process = subprocess.Popen(["haproxy", "-f", str(config), "-db"])
    proxy = Proxy(f"http://127.0.0.1:{port}")

    def is_ready() -> bool:
        import httpx

        try:
            return httpx.get(f"{proxy.base_url}/healthz").status_code == 200
        except httpx.HTTPError:
            return False

    try:
        assert until(is_ready)
        yield proxy
    finally:
        process.terminate()
        process.wait()


async def keep(connection: Connection) -> None:
    """The game keeps its connection."""
    await trio.lowlevel.checkpoint()


async def close(connection: Connection) -> None:
    await connection.close()


async def reset(connection: Connection) -> None:
    connection.reset()
    await trio.lowlevel.checkpoint()


async def count_repeats(place: Server | Proxy, player: Player, then: Callable[[Connection], Awaitable[None]]) -> int:
    """Signs in many games that do ``then`` after they have read the answer. Returns how many get the login again."""
    repeats = 0

    async def sign_in(game: Game, connection: Connection) -> None:
        nonlocal repeats
        assert await player.confirm(game.gsid) == 303
        answer = await connection.receive()
        assert answer.outcome == "OK", answer
        await then(connection)
        again = await game.poll_until_result()
        assert again.outcome in ("OK", "403"), again
        repeats += again.outcome == "OK"

    for _ in range(LOGINS // AT_ONCE):
        games = await new_games(place, AT_ONCE)
        connections = await begin_polls(games)
        async with trio.open_nursery() as nursery:
            for game, connection in zip(games, connections, strict=True):
                nursery.start_soon(sign_in, game, connection)
        for connection in connections:
            await connection.close()
    return repeats


@pytest.mark.parametrize("then", [keep, close, reset])
async def test_login_is_not_repeated_after_its_answer_was_read(
    server: Server, then: Callable[[Connection], Awaitable[None]]
) -> None:
    player = await trio.to_thread.run_sync(lambda: Player(server, new_user(server)))
    assert await count_repeats(server, player, then) == 0


@takes_long
@pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not installed: apt-get install haproxy")
@pytest.mark.parametrize("then", [keep, close, reset])
async def test_login_is_not_repeated_behind_haproxy(
    server: Server, tmp_path: Path, then: Callable[[Connection], Awaitable[None]]
) -> None:
    player = await trio.to_thread.run_sync(lambda: Player(server, new_user(server)))
    with haproxy(server, tmp_path) as proxy:
        assert await count_repeats(proxy, player, then) == 0
