"""Limits of login attempts: which counters an attempt is charged to, and what blocks which attempt."""

from typing import Any

import pytest
import trio
import trio.testing

from sso.accounts.errors import TooManyAttempts
from sso.accounts.history.events import EventKind, record_failure
from sso.accounts.login.rate_limit import FREE_FAILURES, LoginAttempt, LoginRateLimiter, raise_if_blocked
from sso.core.ids import digest
from sso.core.net import SITE_FACTOR, parse_address
from sso.db.database import Database
from sso.db.errors import DatabaseError, LockTimeout, Unavailable
from sso.db.statement import Statement
from sso.services import Services
from sso.telemetry.counters import THROTTLED_REQUESTS
from tests.kit.builders import add_user

HERE, SIX = parse_address("192.0.2.1"), parse_address("2001:db8:1:2::3")
PER_ADDRESS, LOGINS = 10, 3
ATTEMPT = LoginAttempt("ann@example.com", HERE)
_COUNTERS = Statement("SELECT key, failures FROM throttle")
_FORGET = Statement("DELETE FROM throttle")
_BLOCK = Statement(
    """INSERT INTO throttle (key, failures, since, blocked_until, expires)
    VALUES (:key, :failures, now(), now() + interval '60 seconds', now() + interval '15 minutes')"""
)
_IS_BLOCKED = Statement("SELECT blocked_until > since FROM throttle WHERE key = :key")
_ATTEMPTS = Statement("SELECT sum(times) FROM account_events WHERE user_id = :user_id")
_HISTORY = Statement("SELECT kind, address FROM account_events WHERE user_id = :user_id ORDER BY id")


@pytest.fixture
def limiter(services: Services) -> LoginRateLimiter:
    return LoginRateLimiter(services.database, PER_ADDRESS, LOGINS)


async def counters(services: Services, *names: str) -> dict[str, int]:
    """Returns the counters with these names, and fails if there are others."""
    known = {digest(name): name for name in names}
    return {known[bytes(key)]: failures for key, failures in await services.database.rows(_COUNTERS)}


async def block(services: Services, name: str, failures: int = 99) -> None:
    await services.database.value(_BLOCK, key=digest(name), failures=failures)


async def history(services: Services, user_id: str) -> list[tuple[str, str]]:
    return [tuple(row) for row in await services.database.rows(_HISTORY, user_id=user_id)]


async def test_failure_is_charged_to_the_account_or_device_and_to_the_networks(
    services: Services, limiter: LoginRateLimiter
) -> None:
    for attempt, names in (
        (ATTEMPT, ["account:ann@example.com", "address:192.0.2.1"]),
        (LoginAttempt("ann@example.com", HERE, "d1"), ["device:ann@example.com:d1", "address:192.0.2.1"]),
        (
            LoginAttempt("ann@example.com", SIX),
            ["account:ann@example.com", "address:2001:db8:1:2::/64", "address:2001:db8:1::/48"],
        ),
    ):
        await limiter.record_failure(attempt)
        assert await counters(services, *names) == dict.fromkeys(names, 1)
        await limiter.charge(attempt)
        assert await counters(services, *names) == dict.fromkeys(names, 2)
        await limiter.refund(attempt)  # which clears the counter of the account
        assert await counters(services, *names) == dict.fromkeys(names[1:], 1)
        await services.database.rows(_FORGET)


async def test_fifth_failure_blocks_the_account(services: Services, limiter: LoginRateLimiter) -> None:
    assert FREE_FAILURES == 5
    key = digest("account:ann@example.com")
    for number in range(1, FREE_FAILURES + 1):
        await limiter.record_failure(ATTEMPT)
        assert await services.database.value(_IS_BLOCKED, key=key) is (number == FREE_FAILURES)


@pytest.mark.parametrize(("address", "factor"), [("2001:db8:1:2::3", 1), ("2001:db8:1:{n:x}::3", SITE_FACTOR)])
async def test_networks_have_their_limits(
    services: Services, limiter: LoginRateLimiter, address: str, factor: int
) -> None:
    most = PER_ADDRESS * factor
    for number in range(most):
        await limiter.charge_address(parse_address(address.format(n=number)))
    with pytest.raises(TooManyAttempts):
        await limiter.charge_address(parse_address(address.format(n=0)))
    with pytest.raises(TooManyAttempts):
        await limiter.record_failure(LoginAttempt("ann@example.com", parse_address(address.format(n=0))))
    await limiter.charge_address(HERE)


async def test_attempt_without_an_account_is_refunded(services: Services, limiter: LoginRateLimiter) -> None:
    await limiter.charge_address(HERE)
    await limiter.charge_address(HERE)
    await limiter.refund_address(HERE)
    assert await counters(services, "address:192.0.2.1") == {"address:192.0.2.1": 1}


async def test_success_counts_a_login_and_clears_the_failures(services: Services, limiter: LoginRateLimiter) -> None:
    for attempt in (ATTEMPT, LoginAttempt("ann@example.com", HERE, "d1")):
        await limiter.record_failure(attempt)
        names = (attempt.counter, attempt.logins_counter, "address:192.0.2.1")
        await limiter.record_success(attempt, clears=False)
        assert await counters(services, *names) == dict.fromkeys(names, 1)
        await limiter.record_success(attempt)
        assert await counters(services, *names) == {attempt.logins_counter: 2, "address:192.0.2.1": 1}
        await limiter.record_success(attempt)  # the third of a minute, which blocks further ones
        with pytest.raises(TooManyAttempts):
            await limiter.admit(attempt)
        await services.database.rows(_FORGET)


def test_known_devices_have_counters_of_their_own() -> None:
    device = LoginAttempt("ann@example.com", HERE, "d1")
    assert (ATTEMPT.counter, ATTEMPT.logins_counter) == ("account:ann@example.com", "logins:ann@example.com")
    assert (device.counter, device.logins_counter) == ("device:ann@example.com:d1", "known logins:ann@example.com")


async def test_blocked_counters_refuse_the_attempt(services: Services, limiter: LoginRateLimiter) -> None:
    user = await add_user(services, login="ann@example.com")
    for counter, attempt in (
        ("account:ann@example.com", ATTEMPT),
        ("device:ann@example.com:d1", LoginAttempt("ann@example.com", HERE, "d1")),
        ("logins:ann@example.com", ATTEMPT),
        ("address:192.0.2.1", ATTEMPT),
        ("address:2001:db8:1:2::/64", LoginAttempt("ann@example.com", SIX)),
        ("address:2001:db8:1::/48", LoginAttempt("ann@example.com", SIX)),
    ):
        await block(services, counter)
        before = THROTTLED_REQUESTS.counts.get(("login",), 0)
        with pytest.raises(TooManyAttempts) as refused:
            await limiter.admit(attempt)
        assert 30 < refused.value.retry_after <= 61
        assert THROTTLED_REQUESTS.counts["login",] == before + 1
        if not counter.startswith("logins"):  # it counts successes, so a failure is counted all the same
            with pytest.raises(TooManyAttempts):
                await limiter.record_failure(attempt, user)
            with pytest.raises(TooManyAttempts):
                await limiter.record_success(attempt)
            assert await counters(services, counter) == {counter: 99}
        await limiter.failed_logins.write()
        assert (EventKind.SIGN_IN_FAILED, str(attempt.address)) not in await history(services, user.user_id)
        await services.database.rows(_FORGET)


async def test_blocked_counters_of_others_do_not_refuse_the_attempt(
    services: Services, limiter: LoginRateLimiter
) -> None:
    user = await add_user(services, login="ann@example.com")
    await block(services, "account:bob@example.com")
    assert await limiter.admit(ATTEMPT) == user
    await block(services, "account:ann@example.com")
    assert await limiter.admit(LoginAttempt("ann@example.com", HERE, "d1")) == user


@pytest.mark.parametrize("account", ["ann@example.co", "ann@example.comm", "a", "z"])
async def test_account_without_a_user_is_not_that_of_its_neighbour(
    services: Services, limiter: LoginRateLimiter, account: str
) -> None:
    await add_user(services, login="ann@example.com")
    assert await limiter.admit(LoginAttempt(account, HERE)) is None


async def test_limits_that_are_off_count_nothing(services: Services) -> None:
    limiter = LoginRateLimiter(services.database, per_address=0, logins_per_account=0)
    for name in ("address:192.0.2.1", "logins:ann@example.com"):
        await block(services, name)
    assert await limiter.admit(ATTEMPT) is None
    await limiter.charge_address(HERE)
    await limiter.refund_address(HERE)
    await limiter.record_failure(ATTEMPT)
    await limiter.record_success(ATTEMPT)
    names = ("address:192.0.2.1", "logins:ann@example.com")
    assert await counters(services, *names) == dict.fromkeys(names, 99)


async def test_failures_of_a_user_are_in_the_history(services: Services, limiter: LoginRateLimiter) -> None:
    user = await add_user(services, login="ann@example.com")
    await limiter.record_failure(ATTEMPT)  # of somebody who is not known
    await limiter.charge(ATTEMPT)
    await limiter.failed_logins.write()
    assert await history(services, user.user_id) == []
    await limiter.record_failure(ATTEMPT, user)
    assert await history(services, user.user_id) == []  # written later, so that the response does not wait for it
    await limiter.failed_logins.write()
    await limiter.record_wrong_code(ATTEMPT, user)
    assert await history(services, user.user_id) == [
        (EventKind.SIGN_IN_FAILED, "192.0.2.1"),
        (EventKind.CODE_FAILED, "192.0.2.1"),
    ]


@pytest.mark.parametrize(("error", "written"), [(Unavailable, 0), (LockTimeout, 1)])
async def test_failures_that_could_not_be_written_are_written_later(
    services: Services,
    limiter: LoginRateLimiter,
    monkeypatch: pytest.MonkeyPatch,
    error: type[DatabaseError],
    written: int,
) -> None:
    """If one user is locked, the failures of others are written."""

    async def fail(database: Database, user_id: str, *more: Any) -> None:
        if user_id == ann.user_id:
            raise error
        await record_failure(database, user_id, *more)

    bob, ann = await add_user(services, login="bob@example.com"), await add_user(services, login="ann@example.com")
    for user in (bob, ann, ann, ann):
        await limiter.record_failure(ATTEMPT, user)
    with monkeypatch.context() as database:
        database.setattr("sso.accounts.history.failed_logins.record_failure", fail)
        await limiter.failed_logins.write()
    assert len(await history(services, bob.user_id)) == written
    assert await history(services, ann.user_id) == []
    await limiter.failed_logins.write()
    assert await services.database.value(_ATTEMPTS, user_id=bob.user_id) == 1
    assert await services.database.value(_ATTEMPTS, user_id=ann.user_id) == 3


@pytest.mark.parametrize("error", [None, ValueError])
async def test_failures_are_written_before_exit_while_another_write_is_at_work(
    services: Services,
    limiter: LoginRateLimiter,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception] | None,
) -> None:
    """The other write waits for the database until it is cancelled, or fails for another reason."""
    users = [await add_user(services, login=f"{name}@example.com") for name in ("ann", "bob", "eve")]
    for user in users:
        await limiter.record_failure(ATTEMPT, user)

    async def wait_or_fail(*_: object) -> None:
        if error:
            raise error
        await trio.sleep_forever()

    async def write() -> None:
        if error:
            with pytest.raises(error):
                await limiter.failed_logins.write()
        else:
            await limiter.failed_logins.write()

    async with trio.open_nursery() as background:
        with monkeypatch.context() as database:
            database.setattr("sso.accounts.history.failed_logins.record_failure", wait_or_fail)
            background.start_soon(write)
            await trio.testing.wait_all_tasks_blocked()
        await limiter.failed_logins.write_before_exit()
        assert [len(await history(services, user.user_id)) for user in users] == [1, 1, 0]
        background.cancel_scope.cancel()
    await limiter.failed_logins.write()
    # The failure whose write was cancelled is still known. One that cannot be written is dropped.
    assert len(await history(services, users[2].user_id)) == (0 if error else 1)


@pytest.mark.parametrize(("wait", "seconds"), [(0, 1), (0.2, 1), (1.0, 2), (7.9, 8)])
def test_seconds_to_wait_are_rounded_up(wait: float, seconds: Any) -> None:
    raise_if_blocked(None)
    with pytest.raises(TooManyAttempts) as refused:
        raise_if_blocked(wait)
    assert refused.value.retry_after == seconds
