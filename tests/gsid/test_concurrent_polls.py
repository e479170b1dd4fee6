"""Concurrent polls, early polls, polls whose clients disconnect, and many held polls."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address

import pytest
import trio
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from sso.core.keys import public_pem
from sso.gsid.rate_limit import AddressKeys
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
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.postgres import Postgres
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import QUICK, Server, running

MAX_EARLY_POLLS, BLOCK_S, HOLD_S = 2, 60, 1
PRIVATE_KEY = rsa_key()
PUBLIC_KEY = public_pem(PRIVATE_KEY.public_key())


@pytest.fixture(scope="module")
def server(quick_sockets: Server) -> Server:
    return quick_sockets


@pytest.fixture(scope="module")
def strict(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two workers with a delay of a second between polls, which block a client after a few early ones."""
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_WORKERS": "2",
        "SSO_RATE_LOGIN": "0",
        "SSO_GSID_HOLD_S": str(HOLD_S),
        "SSO_POLL_DELAY_S": "1",
        "SSO_POLL_STRIKES": str(MAX_EARLY_POLLS),
        "SSO_POLL_BLOCK_S": str(BLOCK_S),
        "SSO_DATABASE_POOL": "5",
    }
    with running(tmp_path_factory.mktemp("strict"), **settings) as server:
        yield server


# Newer and older polls


async def test_newer_poll_ends_the_older_one_with_retry_on_any_worker(
    server: Server, rows: Rows, player: Player
) -> None:
    one, other = server.workers()
    game = await new_game(server)
    older = await game.begin_poll(one)
    for number, worker in enumerate((other, one, one, other), 2):
        await rows.until_polled(game.gsid, number - 1)
        newer = await game.begin_poll(worker)
        (answer,) = await receive_all([older])
        assert answer.outcome == "RETRY"
        assert answer.data["delay"] == 0
        older = newer
    await rows.until_polled(game.gsid, 5)
    assert await player.confirm(game.gsid) == 303
    (answer,) = await receive_all([older])
    assert answer.outcome == "OK"


async def test_login_on_one_worker_answers_the_poll_on_the_other(server: Server, rows: Rows, player: Player) -> None:
    for worker in server.workers():
        games = [await new_game(server) for _ in range(3)]
        polls = [await game.begin_poll(worker) for game in games]
        for game in games:
            await rows.until_polled(game.gsid)
        began = trio.current_time()
        await player.confirm_all(games, at_once=3)  # on any worker
        answers = await receive_all(polls)
        assert [answer.outcome for answer in answers] == ["OK"] * 3
        assert trio.current_time() - began < 15  # usually sooner than the regular scan


# Early polls


async def poll_at_once(game: Game, count: int) -> list[Answer]:
    """Sends polls without waiting for their results; each ends the one before."""
    connections = [await connect(game.server, game.address) for _ in range(count)]
    return await receive_all([await ask(connection, game) for connection in connections])


async def ask(connection: Connection, game: Game) -> Connection:
    await connection.send(POLL, {"gsid": game.gsid}, game.headers)
    return connection


async def is_blocked(game: Game) -> bool:
    """Closes the session, which is refused if its client is blocked."""
    return (await game.close()).status == 403


async def test_client_with_too_many_early_polls_is_blocked_until_the_block_expires(strict: Server) -> None:
    game, neighbour = await new_game(strict), await new_game(strict)
    for _ in range(1 + MAX_EARLY_POLLS):
        assert (await game.poll()).outcome == "RETRY", "an early poll is counted and answered"
    another = await new_game(strict, address=game.address)
    for worker in strict.workers():
        for blocked in (game, another):
            answer = await blocked.poll(worker)
            assert answer.status == 403
            assert answer.data["status"] == "ERROR"
            assert any(
                entry["record"] == answer.data["error"] for entry in strict.log_events("gsid.violation_recorded")
            )
    assert not await is_blocked(neighbour)
    async with rows_of(strict) as rows:
        ((remaining_s,),) = await rows.run(
            "UPDATE throttle SET blocked_until = now() WHERE key = $1 RETURNING"
            " (SELECT CAST(extract(epoch FROM t.blocked_until - now()) AS float) FROM throttle t WHERE t.key = $1)",
            AddressKeys.of(ip_address(game.address)).early_polls,
        )
    assert 0 < remaining_s <= BLOCK_S
    assert not await is_blocked(game)


async def test_sessions_that_poll_early_once_do_not_block_their_address(strict: Server) -> None:
    first = await new_game(strict)
    others = [await new_game(strict, address=first.address) for _ in range(MAX_EARLY_POLLS)]
    for game in (*others, first):  # the second poll is early, as if the answer of the first one were lost
        assert [(await game.poll()).outcome for _ in range(2)] == ["RETRY"] * 2
    assert not await is_blocked(others[0])
    assert (await first.poll()).outcome == "RETRY", "is early once more, and counts"
    assert await is_blocked(first)


async def test_client_that_waits_for_the_delay_has_no_early_polls(strict: Server) -> None:
    game = await new_game(strict)
    answer = await game.poll()
    assert answer.outcome == "RETRY"
    assert answer.data["delay"] >= 1  # more under load
    await trio.sleep(answer.data["delay"])
    async with await game.begin_poll(), rows_of(strict) as rows:
        await rows.until_polled(game.gsid, 2)
        key = AddressKeys.of(ip_address(game.address)).early_polls
        assert await rows.run("SELECT FROM throttle WHERE key = $1", key) == []


async def test_client_with_a_key_is_blocked_by_its_key_and_not_by_its_address(strict: Server) -> None:
    game = await new_game(strict, public_key=PUBLIC_KEY)
    body = json.dumps({"gsid": game.gsid}).encode()
    signed = base64.b64encode(PRIVATE_KEY.sign(body, padding.PKCS1v15(), hashes.SHA256())).decode()

    async def poll() -> str:
        answer = await ask_once(strict, POLL, body, {"Request-Sign": signed}, address=new_address())
        return answer.outcome

    assert [await poll() for _ in range(1 + MAX_EARLY_POLLS)] == ["RETRY"] * (1 + MAX_EARLY_POLLS)
    assert await poll() == "403", "from any address"
    assert not await is_blocked(await new_game(strict, address=game.address))


async def test_more_than_thirty_polls_of_a_session_in_a_second_are_early(strict: Server) -> None:
    game, neighbour = await new_game(strict), await new_game(strict)
    assert {answer.outcome for answer in await poll_at_once(game, 30)} == {"RETRY"}
    game = await new_game(strict)
    results = Counter(answer.outcome for answer in await poll_at_once(game, 60))
    assert set(results) <= {"403", "RETRY"}
    assert await is_blocked(game)
    assert not await is_blocked(neighbour)


# Clients that disconnect


@pytest.mark.parametrize("how", ["closed", "reset"])
@pytest.mark.parametrize("when", ["at once", "while held"])
async def test_client_that_disconnects_before_the_login_does_not_consume_it(
    server: Server, rows: Rows, player: Player, when: str, how: str
) -> None:
    for _ in range(3 if IS_LONG_RUN else 2):
        game = await new_game(server)
        poll = await game.begin_poll()
        if when == "while held":
            await rows.until_polled(game.gsid)
        if how == "reset":
            poll.reset()
        else:
            await poll.close()
        assert await player.confirm(game.gsid) == 303
        # Another worker may read the abandoned poll after the next one; then it is the newer one.
        assert (await game.poll_until_result()).outcome == "OK"
        assert (await game.poll()).status == 403


async def test_client_that_disconnects_from_one_worker_gets_the_login_from_the_other(
    server: Server, rows: Rows, player: Player
) -> None:
    one, other = server.workers()
    game = await new_game(server)
    poll = await game.begin_poll(one)
    await rows.until_polled(game.gsid)
    await poll.close()
    assert await player.confirm(game.gsid) == 303
    assert (await game.poll(other)).outcome == "OK"


async def test_request_with_an_incomplete_body_does_not_consume_the_login(server: Server, player: Player) -> None:
    game = await new_game(server)
    assert await player.confirm(game.gsid) == 303
    body = json.dumps({"gsid": game.gsid}).encode()
    for cut in (1, len(body) - 1):
        async with await connect(server, game.address) as connection:
            head = f"POST {POLL} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            await connection.stream.send_all(head.encode() + body[:cut])
    assert (await game.poll()).outcome == "OK"


# Many held polls


async def test_held_polls_occupy_no_database_connection(strict: Server) -> None:
    """With more held polls than connections, of which each worker has five, other requests are served as usual."""
    player = await trio.to_thread.run_sync(lambda: Player(strict, new_user(strict)))
    games = await new_games(strict, 60)
    async with rows_of(strict) as rows:
        polls = await begin_polls(games)
        with trio.fail_after(60):
            for _ in range(3):
                assert (await ask_once(strict, "/readyz")).status == 200
                assert (await (await new_game(strict)).info())["state"] == ""
        busy = await rows.run(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND state IN ('active', 'idle in transaction')"
        )
        assert busy[0][0] <= 10
        await player.confirm_all(games[:10])
    answers = await receive_all(polls)
    results = Counter(answer.outcome for answer in answers)
    assert results["OK"] + results["RETRY"] == 60
    # A poll that ended before the confirmation is followed by one that gets the login.
    for game, answer in zip(games[:10], answers, strict=False):
        assert answer.outcome == "OK" or (await game.poll()).outcome == "OK"
