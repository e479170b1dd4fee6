"""Polls that come together, too early or too often; polls whose clients leave; and many that wait."""

import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
import trio
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from sso.core.keys import public_pem
from tests.kit.browser import new_user
from tests.kit.held import (
    POLL,
    Answer,
    Connection,
    Game,
    Player,
    Rows,
    ask_once,
    begin_polls,
    connect,
    new_address,
    new_game,
    new_games,
    receive_all,
    rows_of,
)
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

STRIKES, BLOCK_S, HOLD_S = 3, 2, 1
UNKNOWN = "6a9ff4b2-3c1d-4e5f-8a7b-9c0d1e2f3a4b"
PRIVATE_KEY = rsa.generate_private_key(65537, 2048)
PUBLIC_KEY = public_pem(PRIVATE_KEY.public_key())


@pytest.fixture(scope="module")
def strict(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two workers that want a second between polls, and lose patience soon."""
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_WORKERS": "2",
        "SSO_RATE_LOGIN": "0",
        "SSO_GSID_HOLD_S": str(HOLD_S),
        "SSO_POLL_DELAY_S": "1",
        "SSO_POLL_STRIKES": str(STRIKES),
        "SSO_POLL_BLOCK_S": str(BLOCK_S),
        "SSO_DATABASE_POOL": "2",
    }
    with running(tmp_path_factory.mktemp("strict"), **settings) as server:
        yield server


@pytest.fixture(scope="module")
def player(server: Server) -> Player:
    return Player(server, new_user(server))


@pytest.fixture
async def rows(server: Server) -> AsyncIterator[Rows]:
    async with rows_of(server) as rows:
        yield rows


# One after the other


async def test_a_newer_poll_sends_the_older_one_away_also_from_another_worker(
    server: Server, rows: Rows, player: Player
) -> None:
    one, other = server.workers()
    game = await new_game(server)
    older = await game.begin_poll(one)
    for number, worker in enumerate((other, one, one, other), 2):
        await rows.until_polled(game.gsid, number - 1)
        newer = await game.begin_poll(worker)
        with trio.fail_after(2):
            (answer,) = await receive_all([older])
        assert answer.told == "RETRY"
        assert answer.data["delay"] == 0
        older = newer
    await rows.until_polled(game.gsid, 5)
    assert await player.confirm(game.gsid) == 303
    (answer,) = await receive_all([older])
    assert answer.told == "OK"


async def test_a_login_on_one_worker_is_told_by_a_poll_on_the_other(server: Server, rows: Rows, player: Player) -> None:
    for worker in server.workers():
        games = [await new_game(server) for _ in range(3)]
        polls = [await game.begin_poll(worker) for game in games]
        for game in games:
            await rows.until_polled(game.gsid)
        began = trio.current_time()
        await player.confirm_all(games, at_once=3)  # on whichever
        answers = await receive_all(polls)
        assert [answer.told for answer in answers] == ["OK"] * 3
        assert trio.current_time() - began < 5  # sooner than by the slow look


# Too early, too often


async def poll_at_once(game: Game, count: int) -> list[Answer]:
    """As a client does that does not wait; each poll sends the one before away."""
    connections = [await connect(game.server, game.address) for _ in range(count)]
    return await receive_all([await ask(connection, game) for connection in connections])


async def ask(connection: Connection, game: Game) -> Connection:
    await connection.send(POLL, {"gsid": game.gsid}, game.headers)
    return connection


async def early(game: Game, times: int) -> list[str]:
    """Polls that follow a RETRY at once."""
    return [(await game.poll()).told for _ in range(times)]


async def test_polls_that_ignore_the_delay_are_blocked_for_a_while_and_others_are_not(strict: Server) -> None:
    game, neighbour = await new_game(strict), await new_game(strict)
    told = await early(game, 1 + STRIKES)
    assert told == ["RETRY"] * (1 + STRIKES), "early ones are counted, and answered"
    other = await neighbour.begin_poll()
    another = await new_game(strict, address=game.address)
    for worker in strict.workers():
        for one in (game, another):
            answer = await one.poll(worker)
            assert answer.status == 403
            assert answer.data["status"] == "ERROR"
            assert any(entry["record"] == answer.data["error"] for entry in strict.log_events("gsid.violation"))
    assert [answer.told for answer in await receive_all([other])] == ["RETRY"]
    await trio.sleep(BLOCK_S + 0.2)
    assert (await game.poll()).told == "RETRY"


async def test_polls_that_wait_for_the_delay_are_never_blocked(strict: Server) -> None:
    game = await new_game(strict)
    for _ in range(2):
        answer = await game.poll()
        assert answer.told == "RETRY"
        assert answer.data["delay"] >= 1  # more, if the server is pressed
        await trio.sleep(answer.data["delay"])
    assert (await game.poll()).told == "RETRY"


async def test_a_client_with_a_key_is_blocked_by_its_key_and_not_by_its_address(strict: Server) -> None:
    game = await new_game(strict, public_key=PUBLIC_KEY)
    body = json.dumps({"gsid": game.gsid}).encode()
    signed = base64.b64encode(PRIVATE_KEY.sign(body, padding.PKCS1v15(), hashes.SHA256())).decode()

    async def poll() -> str:
        answer = await ask_once(strict, POLL, body, {"Request-Sign": signed}, address=new_address())
        return answer.told

    assert [await poll() for _ in range(1 + STRIKES)] == ["RETRY"] * (1 + STRIKES)
    assert await poll() == "403", "from whichever address"
    neighbour = await new_game(strict, address=game.address)
    assert (await neighbour.poll()).told == "RETRY"


async def test_more_than_thirty_polls_of_a_session_in_a_second_are_early(strict: Server) -> None:
    game, neighbour = await new_game(strict), await new_game(strict)
    assert {answer.told for answer in await poll_at_once(game, 30)} == {"RETRY"}
    game = await new_game(strict)
    told = Counter(answer.told for answer in await poll_at_once(game, 60))
    assert set(told) <= {"403", "RETRY"}
    assert (await game.poll()).status == 403
    assert (await neighbour.poll()).told == "RETRY"


# Clients that leave


@pytest.mark.parametrize("how", ["closed", "reset"])
@pytest.mark.parametrize("held_s", [0.0, 0.01, 0.3])
async def test_a_client_that_left_before_the_login_has_taken_nothing(
    server: Server, rows: Rows, player: Player, held_s: float, how: str
) -> None:
    for _ in range(5):
        game = await new_game(server)
        poll = await game.begin_poll()
        await trio.sleep(held_s)
        if how == "reset":
            poll.reset()
        else:
            await poll.close()
        assert await player.confirm(game.gsid) == 303
        # One that left at once may be read after the one that came, by another worker: it is then the newer one.
        answer = await (game.poll_on() if held_s < 0.1 else game.poll())
        assert answer.told == "OK"
        assert (await game.poll()).status == 403


async def test_a_client_that_left_on_one_worker_gets_the_login_on_the_other(
    server: Server, rows: Rows, player: Player
) -> None:
    one, other = server.workers()
    game = await new_game(server)
    poll = await game.begin_poll(one)
    await rows.until_polled(game.gsid)
    await poll.close()
    assert await player.confirm(game.gsid) == 303
    assert (await game.poll(other)).told == "OK"


async def test_requests_that_break_off_in_their_body_consume_nothing(server: Server, player: Player) -> None:
    game = await new_game(server)
    assert await player.confirm(game.gsid) == 303
    body = json.dumps({"gsid": game.gsid}).encode()
    for cut in (1, len(body) - 1):
        async with await connect(server, game.address) as connection:
            head = f"POST {POLL} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            await connection.stream.send_all(head.encode() + body[:cut])
    assert (await game.poll()).told == "OK"


# Many that wait


async def test_polls_that_wait_hold_no_connection_to_the_database(strict: Server) -> None:
    """Two hundred of them, and two connections for each worker: everybody else is served as ever."""
    player = await trio.to_thread.run_sync(lambda: Player(strict, new_user(strict)))
    games = await new_games(strict, 200)
    async with rows_of(strict) as rows:
        polls = await begin_polls(games)
        for _ in range(3):
            began = trio.current_time()
            assert (await ask_once(strict, "/readyz")).status == 200
            assert (await (await new_game(strict)).info())["state"] == ""
            assert trio.current_time() - began < 2
        busy = await rows.run(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND state IN ('active', 'idle in transaction')"
        )
        assert busy[0][0] <= 4
        await player.confirm_all(games[:20])
    answers = await receive_all(polls)
    told = Counter(answer.told for answer in answers)
    assert told["OK"] + told["RETRY"] == 200
    # Whoever was sent away before the login was there has it with the next poll.
    for game, answer in zip(games[:20], answers, strict=False):
        assert answer.told == "OK" or (await game.poll()).told == "OK"
