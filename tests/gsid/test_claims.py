"""Who gets the login, when several want it, when it is given back, and when the database leaves that open."""

from collections.abc import AsyncIterator
from ipaddress import ip_address

import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import rsa
from trio.abc import Instrument
from trio.lowlevel import Task

from sso.accounts.model import LoginOptions, User
from sso.core.keys import public_pem
from sso.db.database import Database
from sso.db.errors import Unavailable
from sso.db.notifications import notify
from sso.gsid.errors import Violation
from sso.gsid.model import Cancelled, Claimed, Failed, LoginReady, NotClaimed, Poll, PollOutcome, Retry
from sso.gsid.poll import AlreadyDelivered
from sso.gsid.rate_limit import AddressKeys
from sso.gsid.wiring import GameLogin
from sso.services import Services
from tests.kit.builders import add_user

KEY = b"strikes"
STEPS = 80  # more than any poll takes


@pytest.fixture
async def user(services: Services) -> User:
    return await add_user(services)


@pytest.fixture
async def game(services: Services) -> AsyncIterator[GameLogin]:
    """With its background tasks."""
    async with trio.open_nursery() as nursery:
        await nursery.start(services.notifications.run)
        await nursery.start(services.game.held_polls.run)
        await services.notifications.connected.wait()
        yield services.game
        nursery.cancel_scope.cancel()


async def new_session(services: Services) -> str:
    options = LoginOptions(address=ip_address("192.0.2.1"))
    return (await services.game.registration.register(options, None)).gsid


async def status(database: Database, gsid: str) -> str:
    (row,) = await database.run_sql("SELECT status FROM game_sessions WHERE gsid = $1", [gsid])
    return str(row["status"])


async def new_turn(services: Services, gsid: str) -> Poll:
    turn = await services.game.polls._store.start(gsid)
    assert turn is not None
    return turn


async def all_woken(services: Services) -> None:
    """Every notification that was sent until now has arrived: they come in order."""
    with services.notifications.subscribe("all woken") as signals, trio.fail_after(20):
        await notify(services.database, "all woken")
        await signals.receive()


async def until_polled(services: Services, gsid: str, number: int) -> None:
    with trio.fail_after(20):
        while True:
            (row,) = await services.database.run_sql("SELECT poll FROM game_sessions WHERE gsid = $1", [gsid])
            if row["poll"] >= number:
                return
            await trio.sleep(0.01)


async def poll(game: GameLogin, gsid: str) -> PollOutcome:
    with trio.fail_after(10):
        return await game.polls.wait_for_result(gsid, KEY)


async def test_of_polls_in_one_statement_those_from_elsewhere_change_nothing(services: Services) -> None:
    store, gsid = services.game.polls._store, await new_session(services)
    found: dict[str, list[int | None]] = {"192.0.2.1": [], "192.0.2.2": []}

    async def extend(address: str) -> None:
        turn = await store.start(gsid, address, KEY)
        found[address].append(turn.number if turn else None)

    async with trio.open_nursery() as nursery:
        for address in ("192.0.2.2", "192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2"):
            nursery.start_soon(extend, address)
    assert sorted(found["192.0.2.1"], key=str) == [1, 2]
    assert found["192.0.2.2"] == [None] * 3
    turn = await new_turn(services, gsid)
    assert turn.number == turn.snapshot.newest_poll == 3


@pytest.mark.parametrize("why", ["anwrong address", "a key", "blocked", "unknown", "no gsid"])
async def test_an_address_that_does_not_suffice_leaves_the_session_as_it_was(
    services: Services, database: Database, why: str
) -> None:
    game, options = services.game, LoginOptions(address=ip_address("192.0.2.1"))
    key = public_pem(rsa.generate_private_key(65537, 2048).public_key())
    gsid = (await game.registration.register(options, key if why == "a key" else None)).gsid
    address = ip_address("192.0.2.2" if why == "anwrong address" else "192.0.2.1")
    early = AddressKeys.of(address).early_polls
    if why == "blocked":
        for _ in range(services.settings.poll_strikes):
            await game.rate_limiter.count_early_poll(early)
    asked = {"unknown": "6a9ff4b2-3c1d-4e5f-8a7b-9c0d1e2f3a4b", "no gsid": "no\0gsid"}.get(why, gsid)
    before = await database.run_sql("SELECT * FROM game_sessions WHERE gsid = $1", [gsid])
    with pytest.raises(Violation):
        await game.polls.wait_for_result(asked, early, address)
    assert await database.run_sql("SELECT * FROM game_sessions WHERE gsid = $1", [gsid]) == before


async def test_of_two_polls_in_one_statement_only_the_newest_claims(services: Services, user: User) -> None:
    store = services.game.polls._store
    for _ in range(5):
        gsid = await new_session(services)
        turns = [await new_turn(services, gsid) for _ in range(3)]
        assert await services.game.sessions.confirm(gsid, user)
        found: dict[int, object] = {}

        async def claim(turn: Poll, found: dict[int, object] = found) -> None:
            found[turn.number] = await store.claim(turn)

        async with trio.open_nursery() as nursery:
            # Two that keep the turns busy: the three that come after share a statement.
            for other in [await new_session(services) for _ in range(2)]:
                nursery.start_soon(store.claim, await new_turn(services, other))
            await trio.testing.wait_all_tasks_blocked(0.0)
            for turn in turns:
                nursery.start_soon(claim, turn)
        assert [isinstance(found[n], Claimed) for n in (1, 2, 3)] == [False, False, True]


async def test_polls_of_one_statement_get_numbers_of_their_own_and_all_but_one_are_sent_away(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    outcomes: list[PollOutcome] = []

    nine = trio.Event()

    async def one() -> None:
        outcomes.append(await poll(game, gsid))
        if len(outcomes) == 9:
            nine.set()

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(one)
        await nine.wait()
        assert all(isinstance(outcome, Retry) for outcome in outcomes)
        assert await game.sessions.confirm(gsid, user)
    assert isinstance(outcomes[-1], LoginReady)


async def test_what_is_given_back_is_the_next_polls_and_once_only(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    first = await poll(game, gsid)
    assert isinstance(first, LoginReady)
    await game.polls.release_claim(first.poll)
    second = await poll(game, gsid)
    assert isinstance(second, LoginReady)
    assert second.data["token"] != first.data["token"]
    await game.polls.release_claim(first.poll)  # too late: it is another's
    with pytest.raises(AlreadyDelivered):
        await poll(game, gsid)


async def test_a_poll_that_comes_while_a_claim_is_given_back_gets_it(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    first = await poll(game, gsid)
    assert isinstance(first, LoginReady)
    outcomes: list[PollOutcome] = []

    async def next_poll() -> None:
        outcomes.append(await poll(game, gsid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(next_poll)
        await trio.sleep(0.1)
        await game.polls.release_claim(first.poll)
    assert isinstance(outcomes[0], LoginReady)


async def test_a_claim_that_is_still_under_way_when_its_poll_has_ended_comes_to_nothing(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    turn = await new_turn(services, gsid)
    await game.polls.release_claim(turn)  # it had to leave without knowing
    assert await game.sessions.confirm(gsid, user)
    assert isinstance(await game.polls._store.claim(turn), NotClaimed)
    assert isinstance(await poll(game, gsid), LoginReady)


async def test_what_is_given_back_after_a_close_stays_closed(services: Services, game: GameLogin, user: User) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    first = await poll(game, gsid)
    assert isinstance(first, LoginReady)
    await game.sessions.close(gsid, "Error")
    await game.polls.release_claim(first.poll)
    assert await poll(game, gsid) == Failed("session closed")


class Doubtful:
    """A store whose claims are done, and then said to have failed."""

    def __init__(self, game: GameLogin, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self._claim = game.polls._store.claim
        self.left = failures
        monkeypatch.setattr(game.polls._store, "claim", self.claim)

    async def claim(self, turn: Poll) -> Claimed | NotClaimed | None:
        found = await self._claim(turn)
        if self.left:
            self.left -= 1
            raise Unavailable("the database did not answer in time")
        return found


async def test_a_claim_of_which_nobody_knows_is_found_by_the_same_poll(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    await all_woken(services)  # nobody is woken by it any more
    Doubtful(game, monkeypatch, 1)
    outcomes: list[PollOutcome] = []

    async def one() -> None:
        outcomes.append(await poll(game, gsid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await trio.sleep(0.3)
        assert outcomes == []
        services.notifications.rescan()  # as happens after every loss, and every few seconds
    assert isinstance(outcomes[0], LoginReady)
    with pytest.raises(AlreadyDelivered):
        await poll(game, gsid)


async def test_a_claim_of_which_nobody_knows_is_given_back_when_its_client_leaves(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    await all_woken(services)  # nobody is woken by it any more
    Doubtful(game, monkeypatch, 1)
    with trio.move_on_after(0.3) as left:
        await game.polls.wait_for_result(gsid, KEY)
    assert left.cancelled_caught
    assert isinstance(await poll(game, gsid), LoginReady)


async def test_a_claim_of_which_nobody_knows_is_given_back_when_the_hold_is_over(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    await all_woken(services)  # nobody is woken by it any more
    Doubtful(game, monkeypatch, 2)
    monkeypatch.setattr(game.polls, "_hold_s", 0.3)
    assert isinstance(await poll(game, gsid), Retry)
    assert isinstance(await poll(game, gsid), LoginReady)


async def test_giving_back_is_tried_again_while_the_database_is_busy(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    first = await poll(game, gsid)
    assert isinstance(first, LoginReady)
    give_back, tried = game.polls._store.release_claim, []

    async def busy(turn: Poll) -> None:
        tried.append(turn)
        if len(tried) < 3:
            raise Unavailable("no connection became free")
        await give_back(turn)

    monkeypatch.setattr(game.polls._store, "release_claim", busy)
    await game.polls.release_claim(first.poll)
    assert len(tried) == 3
    assert isinstance(await poll(game, gsid), LoginReady)


async def test_a_login_for_which_no_tokens_could_be_made_waits_for_the_next_poll(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)

    async def issue(*_: object, **__: object) -> None:
        raise Unavailable("no connection became free")

    with monkeypatch.context() as broken:
        broken.setattr(game.polls._authentication_data, "issue", issue)
        outcome = await poll(game, gsid)
        assert isinstance(outcome, Retry)
        assert outcome.delay >= 1, "or it would come at once, again and again"
    assert isinstance(await poll(game, gsid), LoginReady)


class CancelAt(Instrument):
    """Calls a task off before a certain one of its steps."""

    def __init__(self, step: int) -> None:
        self.scope = trio.CancelScope()
        self.task: Task | None = None
        self._left = step

    def before_task_step(self, task: Task) -> None:
        if task is self.task:
            self._left -= 1
            if self._left == 0:
                self.scope.cancel()


@pytest.mark.parametrize("confirmed_before", [True, False])
async def test_a_poll_called_off_at_any_step_takes_nothing_with_it(
    services: Services, game: GameLogin, user: User, *, confirmed_before: bool
) -> None:
    delivered = 0
    for step in range(1, STEPS):
        gsid = await new_session(services)
        if confirmed_before:
            assert await game.sessions.confirm(gsid, user)
        instrument = CancelAt(step)
        outcomes: list[PollOutcome] = []

        async def one(
            gsid: str = gsid, instrument: CancelAt = instrument, outcomes: list[PollOutcome] = outcomes
        ) -> None:
            instrument.task = trio.lowlevel.current_task()
            with instrument.scope:
                outcomes.append(await game.polls.wait_for_result(gsid, KEY))

        trio.lowlevel.add_instrument(instrument)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one)
                if not confirmed_before:
                    await trio.sleep(0.01)
                    assert await game.sessions.confirm(gsid, user)
        finally:
            trio.lowlevel.remove_instrument(instrument)
        if outcomes:
            assert isinstance(outcomes[0], LoginReady)
            delivered += 1
            if delivered == 3:
                return
        else:
            assert isinstance(await poll(game, gsid), LoginReady), f"lost at step {step}"
    pytest.fail("it takes more steps than we thought")


async def test_a_cancel_counts_for_polls_that_were_there_and_not_for_later_ones(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    seen = await game.socket_store.attach(gsid, "socket")
    assert seen is not None
    outcomes: list[PollOutcome] = []

    async def one() -> None:
        outcomes.append(await poll(game, gsid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await until_polled(services, gsid, 1)
        await game.socket_store.cancel(gsid, "another")
        await trio.sleep(0.1)
        assert outcomes == []
        await game.socket_store.cancel(gsid, "socket")
    assert isinstance(outcomes.pop(), Cancelled)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await until_polled(services, gsid, 2)
        assert await game.sessions.confirm(gsid, user)
    assert isinstance(outcomes.pop(), LoginReady)
