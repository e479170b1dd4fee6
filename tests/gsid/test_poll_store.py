"""Which poll gets the login: of several polls, after a released claim, and after a claim with an unknown result."""

from ipaddress import ip_address

import pytest
import trio
from trio.abc import Instrument
from trio.lowlevel import Task

from sso.accounts.model import LoginOptions, User
from sso.core.keys import public_pem
from sso.db.database import Database
from sso.db.errors import Unavailable
from sso.gsid.errors import Violation
from sso.gsid.model import Cancelled, Claim, Claimed, Failed, LoginReady, NotClaimed, Poll, PollOutcome, Retry
from sso.gsid.poll import AlreadyDelivered
from sso.gsid.rate_limit import AddressKeys
from sso.gsid.wiring import GameLogin
from sso.services import Services
from tests.kit.polls import KEY, claim_of, game, new_session, result, start_poll, until_notified, until_polled, user
from tests.kit.rsa_keys import rsa_key

__all__ = ["game", "user"]  # fixtures

MAX_STEPS = 80  # more than any poll takes


async def test_polls_from_another_address_in_the_same_batch_change_nothing(services: Services) -> None:
    store, gsid = services.game_login.polls._store, await new_session(services)
    numbers: dict[str, list[int | None]] = {"192.0.2.1": [], "192.0.2.2": []}

    async def start(address: str) -> None:
        poll = await store.start(gsid, address, KEY)
        numbers[address].append(poll.number if poll else None)

    async with trio.open_nursery() as nursery:
        for address in ("192.0.2.2", "192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2"):
            nursery.start_soon(start, address)
    assert sorted(numbers["192.0.2.1"], key=str) == [1, 2]
    assert numbers["192.0.2.2"] == [None] * 3
    poll = await start_poll(services, gsid)
    assert poll.number == poll.snapshot.newest_poll == 3


async def test_poll_with_an_insufficient_address_is_a_violation_and_changes_nothing(
    services: Services, database: Database
) -> None:
    game, key = services.game_login, public_pem(rsa_key().public_key())
    for number, case in enumerate(("another address", "a key", "blocked", "unknown", "no gsid"), 10):
        own = ip_address(f"192.0.2.{number}")
        gsid = (await game.registration.register(LoginOptions(address=own), key if case == "a key" else None)).gsid
        address = ip_address("192.0.2.2") if case == "another address" else own
        early_poll_key = AddressKeys.of(address).early_polls
        if case == "blocked":
            for _ in range(services.settings.poll_strikes):
                await game.rate_limiter.count_early_poll(early_poll_key, gsid)
        requested = {"unknown": "6a9ff4b2-3c1d-4e5f-8a7b-9c0d1e2f3a4b", "no gsid": "no\0gsid"}.get(case, gsid)
        before = await database.run_sql("SELECT * FROM game_sessions WHERE gsid = $1", [gsid])
        with pytest.raises(Violation):
            await game.polls.wait_for_result(requested, early_poll_key, address)
        assert await database.run_sql("SELECT * FROM game_sessions WHERE gsid = $1", [gsid]) == before, case


async def test_of_several_polls_in_one_batch_only_the_newest_claims(services: Services, user: User) -> None:
    store = services.game_login.claim_leases._store
    for _ in range(2):
        gsid = await new_session(services)
        polls = [await start_poll(services, gsid) for _ in range(3)]
        assert await services.game_login.sessions.confirm(gsid, user)
        claims: dict[int, object] = {}

        async def claim(poll: Poll, claims: dict[int, object] = claims) -> None:
            claims[poll.number] = await store.claim(claim_of(poll))

        async with trio.open_nursery() as nursery:
            # Two other claims occupy the batch, so that the following three share a statement.
            for other in [await new_session(services) for _ in range(2)]:
                nursery.start_soon(store.claim, claim_of(await start_poll(services, other)))
            await trio.testing.wait_all_tasks_blocked(0.0)
            for poll in polls:
                nursery.start_soon(claim, poll)
        assert [isinstance(claims[n], Claimed) for n in (1, 2, 3)] == [False, False, True]


async def test_of_concurrent_polls_all_but_the_newest_get_retry(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    outcomes: list[PollOutcome] = []
    nine_answered = trio.Event()

    async def one() -> None:
        outcomes.append(await result(game, gsid))
        if len(outcomes) == 9:
            nine_answered.set()

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(one)
        await nine_answered.wait()
        assert all(isinstance(outcome, Retry) for outcome in outcomes)
        assert await game.sessions.confirm(gsid, user)
    assert isinstance(outcomes[-1], LoginReady)


async def test_released_claim_is_delivered_to_the_next_poll_once(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    first = await result(game, gsid)
    assert isinstance(first, LoginReady)
    await game.polls.finish(first.claim, delivered=False)
    second = await result(game, gsid)
    assert isinstance(second, LoginReady)
    assert second.data["token"] != first.data["token"]
    await game.polls.finish(first.claim, delivered=False)  # has no effect: another poll has claimed the login
    await game.polls.finish(second.claim, delivered=True)
    with pytest.raises(AlreadyDelivered):
        await result(game, gsid)


async def test_poll_that_starts_before_a_claim_is_released_gets_the_login(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    first = await result(game, gsid)
    assert isinstance(first, LoginReady)
    outcomes: list[PollOutcome] = []

    async def one() -> None:
        outcomes.append(await result(game, gsid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await until_polled(services, gsid, 2)
        assert outcomes == []
        await game.polls.finish(first.claim, delivered=False)
    assert isinstance(outcomes[0], LoginReady)


async def test_claim_that_finishes_after_its_release_gets_nothing(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    claim = claim_of(await start_poll(services, gsid))
    await game.claim_leases.release(claim)
    assert await game.sessions.confirm(gsid, user)
    assert isinstance(await game.claim_leases.claim(claim), NotClaimed)
    assert isinstance(await result(game, gsid), LoginReady)


async def test_claim_released_after_a_close_leaves_the_session_closed(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    first = await result(game, gsid)
    assert isinstance(first, LoginReady)
    await game.sessions.close(gsid, "Error")
    await game.polls.finish(first.claim, delivered=False)
    assert await result(game, gsid) == Failed("session closed")


class UncertainClaims:
    """Makes claims succeed in the database and then fail with a timeout."""

    def __init__(self, game: GameLogin, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self._claim = game.claim_leases._store.claim
        self._failures_left = failures
        self.failed = trio.Event()
        monkeypatch.setattr(game.claim_leases._store, "claim", self.claim)

    async def claim(self, claim: Claim) -> Claimed | NotClaimed | None:
        result = await self._claim(claim)
        if self._failures_left:
            self._failures_left -= 1
            self.failed.set()
            raise Unavailable("the database did not answer in time")
        return result


async def test_uncertain_claim_is_found_by_the_same_poll(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    await until_notified(services)  # so that the notification does not wake the poll
    claims = UncertainClaims(game, monkeypatch, 1)
    outcomes: list[PollOutcome] = []

    async def one() -> None:
        outcomes.append(await result(game, gsid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await claims.failed.wait()
        assert outcomes == []
        services.bus.rescan()  # as after a lost connection and every few seconds
    assert isinstance(outcomes[0], LoginReady)
    await game.polls.finish(outcomes[0].claim, delivered=True)
    with pytest.raises(AlreadyDelivered):
        await result(game, gsid)


async def test_uncertain_claim_is_released_when_the_client_disconnects(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    await until_notified(services)  # so that the notification does not wake the poll
    claims = UncertainClaims(game, monkeypatch, 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(game.polls.wait_for_result, gsid, KEY)
        await claims.failed.wait()
        nursery.cancel_scope.cancel()
    assert isinstance(await result(game, gsid), LoginReady)


async def test_uncertain_claim_is_released_when_the_hold_time_is_over(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)
    await until_notified(services)  # so that the notification does not wake the poll
    UncertainClaims(game, monkeypatch, 2)
    monkeypatch.setattr(game.polls, "_hold_s", 0.05)
    assert isinstance(await result(game, gsid), Retry)
    assert isinstance(await result(game, gsid), LoginReady)


async def test_login_whose_tokens_cannot_be_issued_is_left_to_the_next_poll(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await new_session(services)
    assert await game.sessions.confirm(gsid, user)

    async def issue(*_: object, **__: object) -> None:
        raise Unavailable("no connection became free")

    with monkeypatch.context() as broken:
        broken.setattr(game.polls._issuer, "issue", issue)
        outcome = await result(game, gsid)
        assert isinstance(outcome, Retry)
        assert outcome.delay >= 1, "otherwise the game would poll in a tight loop"
    assert isinstance(await result(game, gsid), LoginReady)


class CancelAt(Instrument):
    """Cancels a task before its n-th step."""

    def __init__(self, step: int) -> None:
        self.scope = trio.CancelScope()
        self.task: Task | None = None
        self._steps_left = step

    def before_task_step(self, task: Task) -> None:
        if task is self.task:
            self._steps_left -= 1
            if self._steps_left == 0:
                self.scope.cancel()


@pytest.mark.parametrize("confirmed_before", [True, False])
async def test_poll_cancelled_at_any_step_does_not_lose_the_login(
    services: Services, game: GameLogin, user: User, *, confirmed_before: bool
) -> None:
    delivered = 0
    for step in range(1, MAX_STEPS):
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
            assert isinstance(await result(game, gsid), LoginReady), f"lost at step {step}"
    pytest.fail("a poll takes more than MAX_STEPS steps")


async def test_closed_socket_cancels_the_held_poll_and_no_later_one(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await new_session(services)
    assert await game.socket_store.attach(gsid, "socket")
    outcomes: list[PollOutcome] = []

    async def one() -> None:
        outcomes.append(await result(game, gsid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await until_polled(services, gsid, 1)
        await game.socket_store.cancel(gsid, "another")
        await until_notified(services)
        assert outcomes == []
        await game.socket_store.cancel(gsid, "socket")
    assert isinstance(outcomes.pop(), Cancelled)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await until_polled(services, gsid, 2)
        assert await game.sessions.confirm(gsid, user)
    assert isinstance(outcomes.pop(), LoginReady)
