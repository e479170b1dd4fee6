"""Many polls at the end of a claim's lease, on both workers: one gets the login, and one token set stays valid."""

import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio

from tests.kit.browser import new_user
from tests.kit.held import POLL, Answer, Connection, Game, Player, Rows, ask_once, connect, new_game, rows_of
from tests.kit.load import LOGIN
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
POLLS = 50 if IS_LONG_RUN else 25
TAKEOVERS = 2  # of one session, one after the other
LEASE_S = 0.4
FACTOR = "device"
# The row as a worker leaves it that dies between the last byte of the answer and the record of the delivery.
LOSE_RECORD = """UPDATE game_sessions SET claimed_until = now() + make_interval(secs => $2)
    WHERE gsid = $1 AND status = 'delivered'"""
pytestmark = pytest.mark.timeout(120 + ROUNDS * 20)


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two workers that block no client for many polls."""
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0",
        "SSO_POLL_STRIKES": "100000",
    }  # fmt: skip
    with running(tmp_path_factory.mktemp("claims"), **settings) as server:
        yield server


@pytest.fixture
async def rows(server: Server) -> AsyncIterator[Rows]:
    async with rows_of(server) as rows:
        yield rows


async def is_valid(server: Server, data: dict[str, Any]) -> bool:
    """Returns whether the user JWT and the token are accepted. Both must be, or none."""
    headers = {"Authorization": f"Bearer {data['jwt']}", "Factor": FACTOR}
    info = await ask_once(server, "/api/permissions/user/info", {}, headers)
    login = await ask_once(server, LOGIN, {"token": data["stoken"]})
    assert {info.status, login.status} in ({200}, {401})
    return info.status == 200


async def poll_around_the_end_of_the_lease(server: Server, game: Game) -> list[Answer]:
    crowd = [await connect(server, game.address) for _ in range(POLLS)]  # the workers share them
    answers: list[Answer] = []

    async def poll(connection: Connection) -> None:
        await trio.sleep(random.uniform(0.5, 1.5) * LEASE_S)
        async with connection:
            answers.append(await connection.ask(POLL, {"gsid": game.gsid}))

    async with trio.open_nursery() as nursery:
        for connection in crowd:
            nursery.start_soon(poll, connection)
    return answers


async def test_one_of_many_polls_takes_a_lost_claim_over(server: Server, rows: Rows) -> None:
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS):
        player = await trio.to_thread.run_sync(lambda: Player(server, new_user(server)))
        game = await new_game(server, factor=FACTOR)
        assert await player.confirm(game.gsid) == 303
        answer = await game.poll_until_result()
        assert answer.outcome == "OK"
        logins = [answer.data]
        await rows.until(game.gsid, lambda row: row["claimed_until"] is None)
        for _ in range(TAKEOVERS):
            await rows.run(LOSE_RECORD, game.gsid, LEASE_S)
            answers = await poll_around_the_end_of_the_lease(server, game)
            outcomes.update(answer.outcome for answer in answers)
            winners = [answer.data for answer in answers if answer.outcome == "OK"]
            assert len(winners) == 1, Counter(answer.outcome for answer in answers)
            assert {answer.outcome for answer in answers} <= {"OK", "RETRY", "403"}
            logins += winners
            await rows.until(game.gsid, lambda row: row["claimed_until"] is None)
        assert [await is_valid(server, data) for data in logins] == [False] * TAKEOVERS + [True]
        for worker in server.workers():
            assert (await game.poll(worker)).status == 403
    print(f"{ROUNDS} rounds: {dict(outcomes)}")
