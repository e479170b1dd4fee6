"""Concurrent requests for one game session: the login data is returned once, and all responses are consistent."""

import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio

from tests.kit.browser import new_user
from tests.kit.held import POLL, Answer, Connection, Game, Player, Rows, connect, new_game, receive_all, rows_of
from tests.kit.server import Server

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
HELD, ARRIVING = 2, 20
EXPIRE_SOON = """UPDATE game_sessions SET created = now() - interval '1199.6 s', ends = now() + interval '1 s'
    WHERE gsid = $1"""
EXPIRE_LATER = """UPDATE game_sessions SET created = now() - interval '1170 s', ends = now() + interval '31 s'
    WHERE gsid = $1"""
pytestmark = [pytest.mark.timeout(120 + ROUNDS * 10), pytest.mark.two_workers]


@pytest.fixture(scope="module")
def players(server: Server) -> list[Player]:
    return [Player(server, new_user(server)) for _ in range(2)]


@pytest.fixture
async def rows(server: Server) -> AsyncIterator[Rows]:
    async with rows_of(server) as rows:
        yield rows


async def together(*work: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Runs all at the same time, started in random order, and returns their results."""
    results: list[Any] = [None] * len(work)

    async def one(n: int) -> None:
        results[n] = await work[n]()

    async with trio.open_nursery() as nursery:
        for n in random.sample(range(len(work)), len(work)):
            nursery.start_soon(one, n)
    return results


def carries_nothing(answer: Answer) -> bool:
    return not {"token", "stoken", "jwt", "user_id"} & set(answer.data)


async def test_one_of_twenty_two_concurrent_polls_gets_the_login_data(
    server: Server, players: list[Player], rows: Rows
) -> None:
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS):
        game = await new_game(server, factor="device")
        body = {"gsid": game.gsid}
        crowd = [await connect(server, game.address) for _ in range(HELD + ARRIVING)]  # the workers share them
        for connection in crowd[:HELD]:
            await connection.send(POLL, body)
        await rows.until_polled(game.gsid)

        arriving = [partial(connection.send, POLL, body) for connection in crowd[HELD:]]
        await together(partial(players[0].confirm, game.gsid), *arriving)
        answers = await receive_all(crowd)
        outcomes.update(answer.outcome for answer in answers)
        winners = [answer for answer in answers if answer.outcome == "OK"]
        assert len(winners) == 1, Counter(answer.outcome for answer in answers)
        assert winners[0].data["token"]
        assert winners[0].data["jwt"]
        assert all(
            answer.outcome in ("RETRY", "403") and carries_nothing(answer)
            for answer in answers
            if answer.outcome != "OK"
        )
        assert await rows.status(game.gsid) == "delivered"
        # No later poll gets the data again.
        for worker in server.workers():
            assert (await game.poll(worker)).status == 403
    print(f"{ROUNDS} rounds: {dict(outcomes)}")


async def race(game: Game, rows: Rows, player: Player, other: Callable[[], Awaitable[Any]]) -> tuple[Answer, str]:
    """Holds a poll while the player confirms and ``other`` runs. Returns the response of the poll, and the status."""
    connection = await game.begin_poll()
    await rows.until_polled(game.gsid)
    await together(partial(player.confirm, game.gsid), other)
    (answer,) = await receive_all([connection])
    return answer, await rows.status(game.gsid)


async def test_login_and_concurrent_close_have_one_consistent_outcome(
    server: Server, players: list[Player], rows: Rows
) -> None:
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        game = await new_game(server)
        answer, status = await race(game, rows, players[0], game.close)
        outcomes[f"{answer.outcome} {status}"] += 1
        assert (await game.info())["state"] == "Success"
        if answer.outcome == "OK":
            assert status == "delivered"
            assert (await game.poll()).status == 403
        else:
            assert answer.data == {"status": "ERROR", "error": "session closed"}
            assert status == "closed"
            assert (await game.poll()).data == {"status": "ERROR", "error": "session closed"}
    print(dict(outcomes))


async def test_login_and_concurrent_denial_have_one_consistent_outcome(
    server: Server, players: list[Player], rows: Rows
) -> None:
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        game = await new_game(server)
        answer, status = await race(game, rows, players[0], partial(players[1].deny, game.gsid))
        outcomes[f"{answer.outcome} {status}"] += 1
        if answer.outcome == "OK":
            assert status == "delivered"
            assert (await game.poll()).status == 403
        else:
            assert answer.data == {"status": "ERROR", "error": "session denied"}
            assert status == "denied"
            assert (await game.poll()).data == {"status": "ERROR", "error": "session denied"}
    print(dict(outcomes))


async def test_login_and_concurrent_socket_close_have_one_consistent_outcome(
    server: Server, players: list[Player], rows: Rows
) -> None:
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        game = await new_game(server)
        async with game.socket() as socket:
            await socket.next("refresh")
            answer, status = await race(game, rows, players[0], socket.connection.aclose)
        outcomes[f"{answer.outcome} {status}"] += 1
        if answer.outcome == "OK":
            assert status == "delivered"
            assert (await game.poll()).status == 403
        else:
            assert answer.outcome == "CANCELLED"
            assert carries_nothing(answer)
            assert (await game.poll()).outcome == "OK", "the session stays usable"
    print(dict(outcomes))


async def test_login_and_concurrent_expiry_have_one_consistent_outcome(
    server: Server, players: list[Player], rows: Rows
) -> None:
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS):
        game = await new_game(server)
        await rows.run(EXPIRE_LATER, game.gsid)
        answer, status = await race(game, rows, players[0], partial(trio.sleep, 0))
        outcomes[f"{answer.outcome} {status}"] += 1
        assert answer.outcome == "OK", "the session has not expired yet"
        game = await new_game(server)
        connection = await game.begin_poll()
        await rows.until_polled(game.gsid)
        await rows.run(EXPIRE_SOON, game.gsid)
        await trio.sleep(random.uniform(0.25, 0.4))  # until just before the session expires
        assert await players[0].confirm(game.gsid) in (303, 410)
        (answer,) = await receive_all([connection])
        status = await rows.status(game.gsid)
        outcomes[f"{answer.outcome} {status}"] += 1
        if answer.outcome == "OK":
            assert status == "delivered"
            continue
        assert answer.outcome in ("RETRY", "ERROR")
        assert carries_nothing(answer)
        assert status in ("pending", "confirmed")
        await trio.sleep(0.1)
        assert (await game.poll()).data == {"status": "ERROR", "error": "session expired"}
        await players[0].confirm(game.gsid)
        assert await rows.status(game.gsid) == status, "too late"
    print(dict(outcomes))


async def test_one_of_two_concurrent_confirmations_wins(server: Server, players: list[Player], rows: Rows) -> None:
    winners: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        game = await new_game(server)
        answer, _ = await race(game, rows, players[0], partial(players[1].confirm, game.gsid))
        assert answer.outcome == "OK"
        assert answer.data["user_id"] == (await rows.get(game.gsid))["user_id"]
        winners[answer.data["user_id"]] += 1
    print(dict(winners))


async def test_result_that_a_disconnecting_client_missed_is_returned_by_its_next_poll(
    server: Server, players: list[Player], rows: Rows
) -> None:
    """The client closes only its sending side at the time of the login, so the test still receives the response."""
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS * 4):
        game = await new_game(server)
        connection = await game.begin_poll()
        await rows.until_polled(game.gsid)

        async def leave(connection: Connection = connection) -> None:
            await trio.sleep(random.uniform(0, 0.03))
            await connection.stream.send_eof()

        await together(partial(players[0].confirm, game.gsid), leave)
        (answer,) = await receive_all([connection])
        after = await game.poll()
        outcomes[f"{answer.outcome} then {after.outcome}"] += 1
        assert (answer.outcome, after.outcome) in (("OK", "403"), ("0", "OK")), outcomes
    print(dict(outcomes))
