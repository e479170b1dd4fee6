"""A claim on a login is a lease: what a later poll gets, and which tokens are valid, if its worker is gone or late."""

from datetime import timedelta
from ipaddress import ip_address
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from sso.accounts.authentication_context import by_browser
from sso.accounts.errors import InvalidCredentials
from sso.accounts.model import LoginOptions, SignedIn, User
from sso.core.jwt import InvalidToken
from sso.db.errors import Unavailable
from sso.gsid import claim_renewal
from sso.gsid import poll as poll_module
from sso.gsid.claim_store import LEASE_S
from sso.gsid.model import Cancelled, Claim, Failed, LoginReady, NotClaimed, PollOutcome, Retry
from sso.gsid.poll import AlreadyDelivered
from sso.gsid.wiring import GameLogin
from sso.services import Services
from tests.kit.conditions import until_true
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.polls import claim_of, game, new_session, result, start_poll, until_notified, until_polled, user

__all__ = ["game", "user"]  # fixtures

ADDRESS = ip_address("192.0.2.1")
SHORT_LEASE_S = 0.3


async def confirmed_session(services: Services, user: User) -> str:
    options = LoginOptions(address=ADDRESS, factor="device")
    gsid = (await services.game_login.registration.register(options, None)).gsid
    assert await services.game_login.sessions.confirm(gsid, user)
    await until_notified(services)  # so that the notification does not wake a poll that starts later
    return gsid


async def claimed_login(services: Services, gsid: str) -> LoginReady:
    """Returns the login as a worker has it before it writes the answer."""
    login = await result(services.game_login, gsid)
    assert isinstance(login, LoginReady)
    return login


async def let_lease_end(services: Services, gsid: str, left_s: float = 0.0) -> None:
    sql = "UPDATE game_sessions SET claimed_until = now() + make_interval(secs => $2) WHERE gsid = $1"
    await services.database.run_sql(sql, [gsid, left_s])


async def row(services: Services, gsid: str) -> Any:
    (found,) = await services.database.run_sql("SELECT * FROM game_sessions WHERE gsid = $1", [gsid])
    return found


async def is_valid(services: Services, data: dict[str, Any]) -> bool:
    """Returns whether the tokens and the user JWT of a login are valid. They must be valid or void together."""
    valid = set()
    for token in (data["token"], data["stoken"]):
        try:
            await services.session_tokens.sign_in(token, ADDRESS)
        except InvalidCredentials:
            valid.add(False)
        else:
            valid.add(True)
    try:
        await services.user_jwts.verify(data["jwt"], ADDRESS, factor="device")
    except InvalidToken:
        valid.add(False)
    else:
        valid.add(True)
    assert len(valid) == 1
    return valid.pop()


async def renewed(services: Services, data: dict[str, Any]) -> dict[str, Any]:
    """Logs in with the token of a login."""
    source = await services.session_tokens.sign_in(data["token"], ADDRESS)
    options = LoginOptions(address=ADDRESS, factor="device")
    return await services.authentication_data.issue(source.signed_in, options, source)


class Polling:
    """A poll that runs while the test goes on."""

    def __init__(self) -> None:
        self.outcome: PollOutcome | type[AlreadyDelivered] | None = None

    async def run(self, game: GameLogin, gsid: str) -> None:
        try:
            self.outcome = await result(game, gsid)
        except AlreadyDelivered:
            self.outcome = AlreadyDelivered

    async def start(self, services: Services, nursery: trio.Nursery, gsid: str) -> None:
        """Starts the poll and waits until it is held."""
        before = (await row(services, gsid))["poll"]
        nursery.start_soon(self.run, services.game_login, gsid)
        await until_polled(services, gsid, before + 1)
        await until_notified(services)


async def test_claim_that_failed_is_repeated_without_another_signal(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database may fail just when the login is confirmed, and then nothing else would wake the poll for long."""
    gsid, poll, claim, failures = await new_session(services), Polling(), game.claim_leases.claim, [1, 2]

    async def fail_twice(wanted: Claim) -> Any:
        if failures:
            failures.pop()
            raise Unavailable("the database does not answer")
        return await claim(wanted)

    monkeypatch.setattr(game.claim_leases, "claim", fail_twice)
    monkeypatch.setattr(poll_module, "FAILED_CLAIM_RETRY_S", 0.05)
    with trio.fail_after(60), capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await poll.start(services, nursery, gsid)
            assert await game.sessions.confirm(gsid, user)
    assert isinstance(poll.outcome, LoginReady)
    assert [entry["event"] for entry in logs].count("gsid.claim_failed") == 2


# The lease ends


async def test_login_of_a_lost_worker_goes_to_the_next_poll_and_voids_the_first_tokens(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    assert await is_valid(services, first.data)
    await let_lease_end(services, gsid)
    assert await is_valid(services, first.data), "the client may have them"
    with capture_logs() as logs:
        second = await claimed_login(services, gsid)
    assert {"event": "gsid.claim_replaced", "gsid": gsid, "log_level": "warning"} in logs
    assert not await is_valid(services, first.data)
    assert await is_valid(services, second.data)
    await game.polls.finish(second.claim, delivered=True)
    with pytest.raises(AlreadyDelivered):
        await result(game, gsid)
    assert await is_valid(services, second.data)


async def test_poll_during_a_lease_waits_for_its_end_and_gets_the_login(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    await let_lease_end(services, gsid, SHORT_LEASE_S)
    ends = (await row(services, gsid))["claimed_until"]
    second = await claimed_login(services, gsid)  # woken by its timer: nothing notifies it
    assert (await row(services, gsid))["claimed_until"] >= ends + timedelta(seconds=LEASE_S)
    assert [await is_valid(services, login.data) for login in (first, second)] == [False, True]


async def test_poll_during_a_lease_is_refused_once_the_answer_was_written(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    later = Polling()
    async with trio.open_nursery() as nursery:
        await later.start(services, nursery, gsid)
        assert later.outcome is None
        await game.polls.finish(first.claim, delivered=True)
    assert later.outcome is AlreadyDelivered
    assert await is_valid(services, first.data)


async def test_hold_time_that_ends_before_the_lease_is_retry(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await confirmed_session(services, user)
    await claimed_login(services, gsid)
    monkeypatch.setattr(game.polls, "_hold_s", 0.05)
    assert isinstance(await result(game, gsid), Retry)


async def test_release_voids_the_tokens_of_the_released_claim_at_the_next_claim(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    await game.polls.finish(first.claim, delivered=False)
    second = await claimed_login(services, gsid)
    assert [await is_valid(services, login.data) for login in (first, second)] == [False, True]


# Late workers


async def test_late_worker_cannot_issue_tokens_after_its_claim_was_taken_over(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await confirmed_session(services, user)
    issue = game.polls._issuer.issue
    second: list[LoginReady] = []

    async def issue_late(*arguments: Any, **options: Any) -> dict[str, Any]:
        monkeypatch.setattr(game.polls._issuer, "issue", issue)
        await let_lease_end(services, gsid)
        second.append(await claimed_login(services, gsid))
        return await issue(*arguments, **options)

    monkeypatch.setattr(game.polls._issuer, "issue", issue_late)
    with capture_logs() as logs:
        assert isinstance(await result(game, gsid), Retry)
    assert [entry["event"] for entry in logs if entry["event"] != "gsid.claim_replaced"] == ["gsid.claim_lost"]
    assert await is_valid(services, second[0].data)
    assert (await row(services, gsid))["claim_id"] == second[0].claim.claim_id


async def test_worker_that_was_stopped_before_its_answer_does_not_send_void_tokens(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await confirmed_session(services, user)
    issue = game.polls._issuer.issue
    logins: list[LoginReady | dict[str, Any]] = []

    async def stop_after_issue(*arguments: Any, **options: Any) -> dict[str, Any]:
        monkeypatch.setattr(game.polls._issuer, "issue", issue)
        logins.append(await issue(*arguments, **options))
        await let_lease_end(services, gsid)
        logins.append(await claimed_login(services, gsid))
        for claim in game.claim_leases._renewed:
            game.claim_leases._renewed[claim] -= LEASE_S  # the time for which the process was stopped
        return dict(logins[0])  # type: ignore[arg-type]

    monkeypatch.setattr(game.polls._issuer, "issue", stop_after_issue)
    assert isinstance(await result(game, gsid), Retry)
    first, second = logins
    assert isinstance(first, dict)
    assert isinstance(second, LoginReady)
    assert not await is_valid(services, first)
    assert await is_valid(services, second.data)


async def test_late_mark_and_late_release_do_not_touch_the_claim_that_took_over(
    services: Services, game: GameLogin, user: User
) -> None:
    for delivered in (True, False):
        gsid = await confirmed_session(services, user)
        first = await claimed_login(services, gsid)
        await let_lease_end(services, gsid)
        second = await claimed_login(services, gsid)
        before = await row(services, gsid)
        await game.polls.finish(first.claim, delivered=delivered)
        assert not await game.claim_leases._store.renew(first.claim)
        assert not await game.claim_leases.deny(first.claim)
        assert await row(services, gsid) == before
        assert [await is_valid(services, login.data) for login in (first, second)] == [False, True]


async def test_sign_in_that_starts_while_its_claim_is_taken_over_ends(
    services: Services, game: GameLogin, user: User
) -> None:
    """Both orders of the two statements, and both at once: the tokens are void, or none are issued."""
    for _ in range(10 if IS_LONG_RUN else 3):
        gsid = await confirmed_session(services, user)
        claim = claim_of(await start_poll(services, gsid))
        claimed = await game.claim_leases.claim(claim)
        assert not isinstance(claimed, NotClaimed)
        await let_lease_end(services, gsid)
        issued: list[dict[str, Any]] = []

        async def issue(claim: Claim = claim, issued: list[dict[str, Any]] = issued) -> None:
            options = LoginOptions(address=ADDRESS, factor="device")
            try:
                data = await services.authentication_data.issue(
                    SignedIn(user, by_browser("login", 0)), options, sign_in_id=claim.claim_id
                )
            except InvalidCredentials:
                return
            issued.append(data)

        later = Polling()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(issue)
            nursery.start_soon(later.run, game, gsid)
        assert isinstance(later.outcome, LoginReady)
        assert await is_valid(services, later.outcome.data)
        assert not [data for data in issued if await is_valid(services, data)]


# Living workers


async def test_lease_of_an_answer_that_takes_long_is_renewed(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_renewal, "CHECK_S", 0.01)
    monkeypatch.setattr(claim_renewal, "RENEWED_AFTER_S", 0.05)
    gsid = await confirmed_session(services, user)
    login = await claimed_login(services, gsid)
    later = Polling()
    async with trio.open_nursery() as nursery:
        await nursery.start(game.claim_leases.run)
        for _ in range(3):
            await let_lease_end(services, gsid, SHORT_LEASE_S)
            shortened = (await row(services, gsid))["claimed_until"]
            with trio.fail_after(60):
                while (await row(services, gsid))["claimed_until"] <= shortened:  # noqa: ASYNC110 - no event for it
                    await trio.sleep(0.01)
        await later.start(services, nursery, gsid)
        await game.polls.finish(login.claim, delivered=True)
        await until_true(lambda: later.outcome is not None)
        nursery.cancel_scope.cancel()
    assert later.outcome is AlreadyDelivered
    assert len(game.claim_leases) == 0
    assert await is_valid(services, login.data)


async def test_delivery_during_an_outage_of_the_database_is_recorded_afterwards(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_renewal, "CHECK_S", 0.01)
    gsid = await confirmed_session(services, user)
    login = await claimed_login(services, gsid)
    store = game.claim_leases._store
    mark_delivered, failures = store.mark_delivered, 0

    async def fail_twice(claim: Claim) -> bool:
        nonlocal failures
        if failures == 2:
            return await mark_delivered(claim)
        failures += 1
        raise Unavailable("no connection became free")

    monkeypatch.setattr(store, "mark_delivered", fail_twice)
    await game.polls.finish(login.claim, delivered=True)
    assert (await row(services, gsid))["claimed_until"] is not None
    async with trio.open_nursery() as nursery:
        await nursery.start(game.claim_leases.run)
        with trio.fail_after(60):
            while (await row(services, gsid))["claimed_until"] is not None:  # noqa: ASYNC110 - no event for it
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    with pytest.raises(AlreadyDelivered):
        await result(game, gsid)


async def test_stopping_worker_records_deliveries_that_it_could_not_record_before(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    login = await claimed_login(services, gsid)
    game.claim_leases._unmarked.add(login.claim)
    async with trio.open_nursery() as nursery:
        await nursery.start(game.claim_leases.run)
        nursery.cancel_scope.cancel()
    assert (await row(services, gsid))["claimed_until"] is None


async def test_release_that_fails_leaves_the_login_to_the_end_of_the_lease(
    services: Services, game: GameLogin, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)

    async def fail(_: Claim) -> None:
        raise Unavailable("no connection became free")

    monkeypatch.setattr(game.claim_leases._store, "release", fail)
    await game.polls.finish(first.claim, delivered=False)
    await let_lease_end(services, gsid, SHORT_LEASE_S)
    second = await claimed_login(services, gsid)
    assert [await is_valid(services, login.data) for login in (first, second)] == [False, True]


# Other events during a lease


async def test_claim_whose_tokens_were_used_counts_as_delivered(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    derived = await renewed(services, first.data)
    await let_lease_end(services, gsid)
    with pytest.raises(AlreadyDelivered):
        await result(game, gsid)
    assert await is_valid(services, first.data)
    assert await is_valid(services, derived)


async def test_tokens_that_derive_from_a_lost_claim_are_void(services: Services, game: GameLogin, user: User) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    derived = await renewed(services, first.data)
    await services.database.run_sql("UPDATE sign_ins SET last_used = created", [])  # as if the claim read it before
    await let_lease_end(services, gsid)
    await claimed_login(services, gsid)
    assert not await is_valid(services, first.data)
    assert not await is_valid(services, derived)


async def test_login_whose_user_signed_out_on_the_account_page_is_not_delivered_again(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    await services.signed_in_games.end(user.user_id, [first.claim.claim_id])
    await let_lease_end(services, gsid)
    with pytest.raises(AlreadyDelivered):
        await result(game, gsid)


async def test_poll_during_a_lease_gets_the_error_of_an_ended_session(
    services: Services, game: GameLogin, user: User
) -> None:
    for ended_by in ("closeGsid", "expiry", "revoked user"):
        gsid = await confirmed_session(services, user)
        first = await claimed_login(services, gsid)
        later = Polling()
        async with trio.open_nursery() as nursery:
            await later.start(services, nursery, gsid)
            if ended_by == "closeGsid":
                assert await game.sessions.close(gsid, "Error")
            elif ended_by == "expiry":
                await services.database.run_sql("UPDATE game_sessions SET ends = now() WHERE gsid = $1", [gsid])
            else:
                await services.users.revoke_all(user.user_id)
            await until_notified(services)
            await let_lease_end(services, gsid)
            services.bus.rescan()
        expected = {"expiry": "session expired"}.get(ended_by, "session closed")
        assert later.outcome == Failed(expected), ended_by
        assert await result(game, gsid) == Failed(expected), ended_by
        assert await is_valid(services, first.data) == (ended_by != "revoked user"), ended_by


async def test_session_that_was_closed_before_the_answer_was_written_is_delivered(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    assert await game.sessions.close(gsid, "Success")
    later = Polling()
    async with trio.open_nursery() as nursery:
        await later.start(services, nursery, gsid)
        assert later.outcome is None
        await game.polls.finish(first.claim, delivered=True)
    assert later.outcome is AlreadyDelivered


async def test_closed_socket_cancels_a_poll_during_a_lease_and_keeps_the_login(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    assert await game.socket_store.attach(gsid, "socket")
    await claimed_login(services, gsid)
    later = Polling()
    async with trio.open_nursery() as nursery:
        await later.start(services, nursery, gsid)
        await game.socket_store.cancel(gsid, "socket")
    assert isinstance(later.outcome, Cancelled)
    await let_lease_end(services, gsid)
    assert isinstance(await result(game, gsid), LoginReady)


# A worker of the release before, which has no leases, beside this one

OLD_CLAIM = """UPDATE game_sessions SET status = 'delivered', claimed_poll = poll
    WHERE gsid = $1 AND poll = $2
        AND (status = 'confirmed' OR (status = 'delivered' AND claimed_poll = $2)) RETURNING gsid"""


async def test_claim_of_the_release_before_counts_as_delivered(services: Services, game: GameLogin, user: User) -> None:
    gsid = await confirmed_session(services, user)
    first = await claimed_login(services, gsid)
    await game.polls.finish(first.claim, delivered=False)  # it leaves a claim id
    poll = await start_poll(services, gsid)
    assert await services.database.run_sql(OLD_CLAIM, [gsid, poll.number])
    with pytest.raises(AlreadyDelivered):
        await result(game, gsid)


async def test_worker_of_the_release_before_cannot_claim_a_claimed_login(
    services: Services, game: GameLogin, user: User
) -> None:
    gsid = await confirmed_session(services, user)
    await claimed_login(services, gsid)
    poll = await start_poll(services, gsid)
    await let_lease_end(services, gsid)
    assert not await services.database.run_sql(OLD_CLAIM, [gsid, poll.number])
