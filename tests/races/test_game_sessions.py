"""A login is handed out once, and whatever happens at the same instant, everybody is told the same story."""

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

ROUNDS = int(os.environ.get("RACE_ROUNDS", "5"))
HELD, ARRIVING = 2, 20
NEARLY_OVER = """UPDATE game_sessions SET created = now() - interval '1199.6 s', ends = now() + interval '1 s'
    WHERE gsid = $1"""
pytestmark = pytest.mark.timeout(120 + ROUNDS * 10)


@pytest.fixture(scope="module")
def players(server: Server) -> list[Player]:
    return [Player(server, new_user(server)) for _ in range(2)]


@pytest.fixture
async def rows(server: Server) -> AsyncIterator[Rows]:
    async with rows_of(server) as rows:
        yield rows


async def together(*work: Callable[[], Awaitable[Any]]) -> list[Any]:
    """All at the same instant, in any order; what came of each."""
    found: list[Any] = [None] * len(work)

    async def one(n: int) -> None:
        found[n] = await work[n]()

    async with trio.open_nursery() as nursery:
        for n in random.sample(range(len(work)), len(work)):
            nursery.start_soon(one, n)
    return found


def carries_nothing(answer: Answer) -> bool:
    return not {"token", "stoken", "jwt", "user_id"} & set(answer.data)


async def test_of_twenty_two_polls_at_the_moment_of_the_login_exactly_one_gets_the_data(
    server: Server, players: list[Player], rows: Rows
) -> None:
    told: Counter[str] = Counter()
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
        told.update(answer.outcome for answer in answers)
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
        # And nobody ever gets it again.
        for worker in server.workers():
            assert (await game.poll(worker)).status == 403
    print(f"{ROUNDS} rounds: {dict(told)}")


async def race(game: Game, rows: Rows, player: Player, other: Callable[[], Awaitable[Any]]) -> tuple[Answer, str]:
    """A poll is held while somebody confirms and something else happens. What the poll was told, and the status."""
    connection = await game.begin_poll()
    await rows.until_polled(game.gsid)
    await together(partial(player.confirm, game.gsid), other)
    (answer,) = await receive_all([connection])
    return answer, await rows.status(game.gsid)


async def test_a_login_and_a_close_end_in_one_order(server: Server, players: list[Player], rows: Rows) -> None:
    stories: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        game = await new_game(server)
        answer, status = await race(game, rows, players[0], game.close)
        stories[f"{answer.outcome} {status}"] += 1
        assert (await game.info())["state"] == "Success"
        if answer.outcome == "OK":
            assert status == "delivered"
            assert (await game.poll()).status == 403
        else:
            assert answer.data == {"status": "ERROR", "error": "session closed"}
            assert status == "closed"
            assert (await game.poll()).data == {"status": "ERROR", "error": "session closed"}
    print(dict(stories))


async def test_a_login_and_a_denial_end_in_one_order(server: Server, players: list[Player], rows: Rows) -> None:
    stories: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        game = await new_game(server)
        answer, status = await race(game, rows, players[0], partial(players[1].deny, game.gsid))
        stories[f"{answer.outcome} {status}"] += 1
        if answer.outcome == "OK":
            assert status == "delivered"
            assert (await game.poll()).status == 403
        else:
            assert answer.data == {"status": "ERROR", "error": "session denied"}
            assert status == "denied"
            assert (await game.poll()).data == {"status": "ERROR", "error": "session denied"}
    print(dict(stories))


async def test_a_login_and_a_socket_that_is_closed_end_in_one_order(
    server: Server, players: list[Player], rows: Rows
) -> None:
    stories: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        game = await new_game(server)
        async with game.socket() as socket:
            await socket.next("refresh")
            answer, status = await race(game, rows, players[0], socket.connection.aclose)
        stories[f"{answer.outcome} {status}"] += 1
        if answer.outcome == "OK":
            assert status == "delivered"
            assert (await game.poll()).status == 403
        else:
            assert answer.outcome == "CANCELLED"
            assert carries_nothing(answer)
            assert (await game.poll()).outcome == "OK", "the session went on"
    print(dict(stories))


async def test_a_login_and_the_end_of_the_session_end_in_one_order(
    server: Server, players: list[Player], rows: Rows
) -> None:
    stories: Counter[str] = Counter()
    for _ in range(ROUNDS):
        game = await new_game(server)
        await rows.run(NEARLY_OVER, game.gsid)
        answer, status = await race(game, rows, players[0], partial(trio.sleep, 0))
        stories[f"{answer.outcome} {status}"] += 1
        assert answer.outcome == "OK", "there was time enough"
        game = await new_game(server)
        await rows.run(NEARLY_OVER, game.gsid)
        connection = await game.begin_poll()
        await rows.until_polled(game.gsid)
        await trio.sleep(random.uniform(0.25, 0.4))  # to the very end
        assert await players[0].confirm(game.gsid) in (303, 410)
        (answer,) = await receive_all([connection])
        status = await rows.status(game.gsid)
        stories[f"{answer.outcome} {status}"] += 1
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
    print(dict(stories))


async def test_of_two_who_confirm_at_once_one_is_the_one(server: Server, players: list[Player], rows: Rows) -> None:
    winners: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        game = await new_game(server)
        answer, _ = await race(game, rows, players[0], partial(players[1].confirm, game.gsid))
        assert answer.outcome == "OK"
        assert answer.data["user_id"] == (await rows.get(game.gsid))["user_id"]
        winners[answer.data["user_id"]] += 1
    print(dict(winners))


async def test_an_answer_that_a_leaving_client_did_not_get_is_kept_for_its_next_poll(
    server: Server, players: list[Player], rows: Rows
) -> None:
    """It leaves at the moment of the login, but would still hear what is said: so we know what it was told."""
    stories: Counter[str] = Counter()
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
        stories[f"{answer.outcome} then {after.outcome}"] += 1
        assert (answer.outcome, after.outcome) in (("OK", "403"), ("0", "OK")), stories
    print(dict(stories))
