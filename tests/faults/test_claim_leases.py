"""A node is killed or stopped between the claim of a login and its answer; the games poll again at the other node.

No login is lost, and of all token sets that were issued for a session, one is valid. A usual run has few rounds;
SSO_TEST_ROUNDS=20 (scripts/faults) has many.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio

from sso.core.encryption import MasterKey
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.gsid.claim_store import LEASE_S
from tests.faults import ROUNDS, kill, open_folder, rounds, serving
from tests.kit.browser import new_user
from tests.kit.held import (
    Answer,
    Game,
    Player,
    Rows,
    ask_once,
    begin_polls,
    new_games,
    receive_all,
    rows_of,
)
from tests.kit.long_tests import takes_long
from tests.kit.open_database import open_database
from tests.kit.prepared_data import join_prepared
from tests.kit.server import Server, until
from tests.kit.timing import SLACK

GAMES = 8 if ROUNDS > 1 else 4  # a user has a limited number of session tokens
FACTOR = "device"
APPLICATION = 10
ALL_CLAIMED_S = 1.0  # a statement waits for a lock for 1.5 s
ANSWERED_S = 5.0  # after the end of the lease
WITH_STATEMENTS = "killed and its statements with it"
HOW = ["killed", pytest.param(WITH_STATEMENTS, marks=takes_long), "stopped"]
pytestmark = pytest.mark.timeout(180 + 60 * ROUNDS)

_LOCK = Statement("LOCK TABLE session_tokens IN SHARE MODE")
_PAUSE = Statement("SELECT pg_sleep(0.01)")
_CLAIMED = Statement("SELECT count(*) FROM game_sessions WHERE gsid = ANY (:gsids) AND claimed_until IS NOT NULL")
_TERMINATE = Statement(
    """SELECT count(pg_terminate_backend(pid)) FROM pg_locks
    WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"""
)
_LIVING_SIGN_INS = """SELECT count(*) FROM sign_ins i JOIN game_sessions s ON s.claim_id = i.id
    WHERE s.gsid = ANY ($1) AND NOT i.ended"""


class Nodes(NamedTuple):
    """Two servers with one worker each on one database."""

    failing: Server
    healthy: Server
    player: Player  # signed in at the healthy node


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with open_folder() as folder:
        database = join_prepared(folder / "elsewhere")
        settings = {
            "SSO_DATABASE_URL": database.dsn(),
            "SSO_SECRET_KEY": MasterKey.generate().text(),
            "SSO_WORKERS": "1",
            "SSO_GSID_HOLD_S": "60",
        }
        first, second = node_folder(folder, "failing"), node_folder(folder, "healthy")
        try:
            with serving(first, **settings) as failing, serving(second, **settings) as healthy:
                healthy.apply({"applications": [{"application_id": APPLICATION, "name": "Tanks"}]})
                yield Nodes(failing, healthy, Player(healthy, new_user(healthy)))
        finally:
            database.close()


def node_folder(folder: Path, name: str) -> Path:
    node = folder / name
    node.mkdir()
    return node


@pytest.mark.parametrize("how", HOW)
async def test_claimed_logins_of_a_lost_node_reach_their_games_once(nodes: Nodes, how: str) -> None:
    for _ in rounds(max(1, ROUNDS // 2)):
        games = await new_games(nodes.failing, GAMES, factor=FACTOR)
        polls = await begin_polls(games)
        async with rows_of(nodes.healthy) as rows:
            await until_held(rows, games)
            worker = nodes.failing.workers()[0]
            claimed = await lose_worker_between_claim_and_answer(nodes, games, worker, how)
            assert claimed > 0
            began = trio.current_time()
            at_healthy = [Game(nodes.healthy, game.gsid, game.location, game.address) for game in games]
            answers = await receive_all(await begin_polls(at_healthy))
            took = trio.current_time() - began
            kill([worker], signal.SIGCONT)  # a stopped worker goes on, late
            late = await receive_all(polls)
            print(f"{how}: {claimed} of {len(games)} claimed, all answered after {took:.1f} s")
            assert [answer.outcome for answer in answers] == ["OK"] * GAMES
            assert took < LEASE_S + ANSWERED_S * SLACK
            assert {answer.outcome for answer in late} <= {"RETRY", "0"}
            assert await valid_sets(nodes.healthy, [answer.data for answer in answers]) == GAMES
            assert (await rows.run(_LIVING_SIGN_INS, [game.gsid for game in games]))[0][0] == GAMES
            again = await receive_all(await begin_polls(at_healthy))
            assert {answer.status for answer in again} == {403}
        assert until(lambda: len(nodes.failing.workers()) == 1)
        await until_ready(nodes.failing)


async def until_held(rows: Rows, games: list[Game]) -> None:
    for game in games:
        await rows.until_polled(game.gsid)


async def lose_worker_between_claim_and_answer(nodes: Nodes, games: list[Game], worker: int, how: str) -> int:
    """Confirms the games while no token can be issued, and stops the worker. Returns the number of claimed logins."""
    gsids = [game.gsid for game in games]
    locked = False

    async def lose(tx: Transaction) -> int:
        nonlocal locked
        await tx.value(_LOCK)
        locked = True
        claimed, end = 0, time.monotonic() + 60
        while not claimed:
            assert time.monotonic() < end
            await tx.value(_PAUSE)
            claimed = await tx.value(_CLAIMED, gsids=gsids)
        end = time.monotonic() + ALL_CLAIMED_S
        while claimed < len(games) and time.monotonic() < end:
            await tx.value(_PAUSE)
            claimed = await tx.value(_CLAIMED, gsids=gsids)
        os.kill(worker, signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
        if how == WITH_STATEMENTS:
            await tx.value(_TERMINATE)
        return int(await tx.value(_CLAIMED, gsids=gsids))

    result: list[int] = []

    async def run(database: Database) -> None:
        result.append(await database.long_transaction(90, lose))

    dsn = nodes.healthy.settings["SSO_DATABASE_URL"]
    async with open_database(dsn, 1) as database, trio.open_nursery() as nursery:
        nursery.start_soon(run, database)
        while not locked:  # noqa: ASYNC110 - there is no event to wait for
            await trio.sleep(0.01)
        await nodes.player.confirm_all(games)
    return result[0]


async def until_ready(server: Server) -> None:
    with trio.fail_after(60):
        while (await ask_once(server, "/readyz")).status != 200:  # noqa: ASYNC110 - there is no event to wait for
            await trio.sleep(0.05)


def own_data(user_id: str) -> dict[str, Any]:
    return {"action": "get", "application_id": APPLICATION, "data": {"user_id": user_id}}


async def valid_sets(server: Server, logins: list[dict[str, Any]]) -> int:
    """Returns for how many logins every endpoint accepts the tokens. The others must be accepted nowhere."""
    valid = 0
    for data in logins:
        headers = {"Authorization": f"Bearer {data['jwt']}", "Factor": FACTOR}
        answers: list[Answer] = [
            await ask_once(server, "/api/permissions/user/info", {}, headers),
            await ask_once(server, "/api/permissions/meta/data", own_data(data["user_id"]), headers),
            await ask_once(server, "/proxy/oauth/exchange", {}, headers),
            await ask_once(server, "/proxy/api/login", {"token": data["token"]}),
            await ask_once(server, "/proxy/api/login", {"token": data["stoken"]}),
        ]
        statuses = {answer.status for answer in answers}
        assert statuses in ({200}, {401}), statuses
        valid += statuses == {200}
    return valid
