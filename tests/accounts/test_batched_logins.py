"""Concurrent logins share batched statements; each gets the same result as it would alone."""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any

import pytest
import trio

from sso.accounts.authentication_context import by_password
from sso.accounts.disabling import set_disabled
from sso.accounts.errors import InvalidCredentials, TooManyAttempts
from sso.accounts.login.rate_limit import LoginAttempt, LoginRateLimiter
from sso.accounts.model import LoginOptions, User
from sso.core.ids import digest
from sso.core.net import parse_address
from sso.db.batch.statement_batch import MAX_CONCURRENT_BATCHES
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.services import Services
from tests.kit.builders import PASSWORD, add_user
from tests.kit.conditions import until_blocking

HERE, THERE = parse_address("192.0.2.1"), parse_address("192.0.2.2")
MANY = MAX_CONCURRENT_BATCHES + 6  # the first calls may run alone; the others share a batch
PER_ADDRESS = 10

_COUNT = Statement(
    """INSERT INTO throttle (key, failures, since, blocked_until, expires)
    VALUES (:key, 3, now(), now() + make_interval(secs => :wait), now() + interval '15 minutes')"""
)
_BLOCK = Statement("UPDATE throttle SET blocked_until = now() + make_interval(secs => :wait) WHERE key = :key")
_COUNTED = Statement("SELECT key FROM throttle")
_LOCK_SESSIONS = Statement("SELECT id FROM browser_sessions WHERE user_id = :user_id FOR UPDATE")
_RENAME = Statement("UPDATE users SET nick = 'Bob' WHERE user_id = :user_id")


async def run_concurrently(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """Returns the result of each call, or the class of its exception."""
    outcomes: list[Any] = [None] * len(calls)

    async def run(index: int) -> None:
        try:
            outcomes[index] = await calls[index]
        except (InvalidCredentials, TooManyAttempts) as error:
            outcomes[index] = type(error)

    async with trio.open_nursery() as nursery:
        for index in range(len(calls)):
            nursery.start_soon(run, index)
    return outcomes


@pytest.fixture
def rate_limiter(database: Database) -> LoginRateLimiter:
    return LoginRateLimiter(database, PER_ADDRESS, 0)


async def add_failures(database: Database, name: str, *, wait: float = -1) -> bytes:
    """Adds a counter of an account or an address with failures, blocked for ``wait`` seconds."""
    key = digest(name)
    await database.value(_COUNT, key=key, wait=wait)
    return key


async def counter_keys(database: Database) -> set[bytes]:
    return {row["key"] for row in await database.rows(_COUNTED)}


async def test_concurrent_successes_of_one_account_do_not_block_each_other(
    rate_limiter: LoginRateLimiter, database: Database
) -> None:
    await add_failures(database, "account:ann")
    assert (
        await run_concurrently([rate_limiter.record_success(LoginAttempt("ann", HERE)) for _ in range(MANY)])
        == [None] * MANY
    )
    assert await counter_keys(database) == set()


async def test_blocked_account_does_not_affect_others_in_its_batch(
    rate_limiter: LoginRateLimiter, database: Database
) -> None:
    blocked = {await add_failures(database, f"account:blocked{number}", wait=60) for number in range(MANY)}
    for number in range(MANY):
        await add_failures(database, f"account:free{number}")
    accounts = [f"{kind}{number}" for number in range(MANY) for kind in ("blocked", "free", "new")]
    calls = [rate_limiter.record_success(LoginAttempt(account, HERE)) for account in accounts]
    assert await run_concurrently(calls) == [TooManyAttempts, None, None] * MANY
    assert await counter_keys(database) == blocked  # a success clears the counter of its account


async def test_blocked_address_does_not_affect_others_in_its_batch(
    rate_limiter: LoginRateLimiter, database: Database
) -> None:
    address = await add_failures(database, f"address:{HERE}", wait=60)
    other = await add_failures(database, f"address:{THERE}")
    kept = {await add_failures(database, f"account:here{number}") for number in range(MANY)}
    for number in range(MANY):
        await add_failures(database, f"account:there{number}")
    calls = [rate_limiter.record_success(LoginAttempt(f"here{number}", HERE)) for number in range(MANY)]
    calls += [rate_limiter.record_success(LoginAttempt(f"there{number}", THERE)) for number in range(MANY)]
    assert await run_concurrently(calls) == [TooManyAttempts] * MANY + [None] * MANY
    assert await counter_keys(database) == kept | {address, other}  # a success clears an account, never an address


async def test_longer_block_of_account_and_address_applies(rate_limiter: LoginRateLimiter, database: Database) -> None:
    await add_failures(database, "account:ann", wait=20)
    await add_failures(database, f"address:{HERE}", wait=40)
    for attempt in (rate_limiter.admit, rate_limiter.record_success):
        for address, least in ((HERE, 38), (THERE, 18)):
            with pytest.raises(TooManyAttempts) as refused:
                await attempt(LoginAttempt("ann", address))
            assert least <= refused.value.retry_after <= least + 3


@pytest.mark.parametrize(("wait", "outcome"), [(60.0, TooManyAttempts), (-1.0, None)])
async def test_success_waits_for_a_concurrent_failure_and_respects_its_block(
    rate_limiter: LoginRateLimiter, database: Database, wait: float, outcome: object
) -> None:
    key = await add_failures(database, "account:ann")
    outcomes: list[object] = []

    async def fail(tx: Transaction) -> None:
        await tx.value(_BLOCK, key=key, wait=wait)
        failing.set()
        await until_blocking(tx)

    async def succeed_meanwhile() -> None:
        await failing.wait()
        outcomes.extend(
            await run_concurrently([rate_limiter.record_success(LoginAttempt("ann", HERE)) for _ in range(MANY)])
        )

    failing = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(succeed_meanwhile)
        await database.transaction(fail)
    assert outcomes == [outcome] * MANY
    assert await counter_keys(database) == ({key} if outcome else set())


async def test_admit_returns_each_user_of_a_batch(services: Services, rate_limiter: LoginRateLimiter) -> None:
    ann, bob = await add_user(services), await add_user(services)
    await add_failures(services.database, f"account:{bob.login_key}", wait=60)
    await add_failures(services.database, f"account:{ann.login_key}")
    logins = [ann.login_key, "nobody", bob.login_key] * MANY
    assert (
        await run_concurrently([rate_limiter.admit(LoginAttempt(login, HERE)) for login in logins])
        == [ann, None, TooManyAttempts] * MANY
    )


async def test_concurrent_logins_return_their_own_users(services: Services) -> None:
    people = [await add_user(services) for _ in range(MANY)]

    async def sign_in(login: str, password: str) -> str:
        outcome = await services.password_login.check_password(login, password, HERE)
        return outcome.user.user_id

    calls = [sign_in(user.login, password) for user in people for password in (PASSWORD, "wrong")]
    expected = [[user.user_id, InvalidCredentials] for user in people]
    assert await run_concurrently(calls) == [outcome for pair in expected for outcome in pair]


async def test_disabled_user_does_not_affect_others_in_its_batch(services: Services) -> None:
    good, bad = await add_user(services), await add_user(services)
    await services.database.transaction(set_disabled, bad.user_id, disabled=True)
    started = await run_concurrently(
        [services.sessions.start(user, by_password(), HERE, "") for user in [good, bad] * MANY]
    )
    assert started[1::2] == [InvalidCredentials] * MANY
    assert len({session.secret for session in started[::2]}) == MANY  # with many browsers at once
    for session in started[::2]:
        assert session.user == good
        assert await services.sessions.look_up(session.secret, HERE) == session
    assert len(await services.sessions.list(good.user_id)) == MANY
    assert await services.sessions.list(bad.user_id) == []


async def test_logins_that_replace_the_same_cookies_all_get_a_session(services: Services) -> None:
    before, user = await add_user(services), await add_user(services)
    old = await services.sessions.start(before, by_password(), HERE, "")
    challenge = await services.sessions.start_challenge(before)
    other = await services.sessions.start(before, by_password(), HERE, "")
    start = partial(services.sessions.start, user, by_password(), HERE, "", session=old.secret, visit=challenge)
    secrets = {session.secret for session in await run_concurrently([start() for _ in range(MANY)])}
    assert len(secrets) == MANY
    assert all([await services.sessions.look_up(secret, HERE) for secret in secrets])
    assert await services.sessions.look_up(old.secret, HERE) is None
    assert await services.sessions.find_challenge(challenge) is None
    assert await services.sessions.look_up(other.secret, HERE)


async def test_session_in_the_visit_cookie_ends_as_well(services: Services) -> None:
    user = await add_user(services)
    old, challenge = (
        await services.sessions.start(user, by_password(), HERE, ""),
        await services.sessions.start_challenge(user),
    )
    await services.sessions.start(user, by_password(), HERE, "", session=challenge, visit=old.secret)
    assert await services.sessions.look_up(old.secret, HERE) is None
    assert await services.sessions.find_challenge(challenge) is None


async def test_login_does_not_wait_for_a_change_of_another_user(services: Services) -> None:
    """The change may be part of a long transaction. Only a login of the changed user waits for its outcome."""
    changed, *others = [await add_user(services) for _ in range(MANY)]
    ended: list[str] = []

    async def change(tx: Transaction) -> None:
        await tx.value(_RENAME, user_id=changed.user_id)
        changing.set()
        await until_blocking(tx, lambda: len(ended) == len(others))
        ended.append("change")

    async def sign_in_meanwhile() -> None:
        await changing.wait()

        async def sign_in(user: User) -> None:
            await services.sessions.start(user, by_password(), HERE, "")
            ended.append("changed" if user is changed else "other")

        assert await run_concurrently([sign_in(user) for user in (*others, changed)]) == [None] * MANY

    changing = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sign_in_meanwhile)
        await services.database.transaction(change)
    assert ended == ["other"] * len(others) + ["change", "changed"]


async def test_tokens_issued_in_one_batch_belong_to_their_users(services: Services) -> None:
    people = [await add_user(services) for _ in range(MANY)]
    gone = await add_user(services)
    await services.users.revoke_all(gone.user_id)
    tokens = services.session_tokens
    calls = [
        tokens.issue(user, by_password(), LoginOptions(HERE, short_token=bound))
        for user in people
        for bound in (False, True)
    ]
    *issued, nothing = await run_concurrently([*calls, tokens.issue(gone, by_password(), LoginOptions(HERE))])
    assert nothing is InvalidCredentials
    for user, free, bound in zip(people, issued[::2], issued[1::2], strict=True):
        kinds = {"long": free.token, "short": free.stoken, "bound": bound.token}
        assert bound.stoken == ""
        for kind, token in kinds.items():
            source = await tokens.sign_in(token, HERE)
            assert (source.signed_in.user.user_id, source.kind) == (user.user_id, kind)
        assert (await tokens.sign_in(free.token, THERE)).kind == "long"
        with pytest.raises(InvalidCredentials):
            await tokens.sign_in(bound.token, THERE)


async def test_login_does_not_wait_for_the_previous_session_of_another_browser(services: Services) -> None:
    before, *others = [await add_user(services) for _ in range(MANY)]
    old = await services.sessions.start(before, by_password(), HERE, "")
    ended: list[str] = []

    async def change(tx: Transaction) -> None:
        await tx.value(_LOCK_SESSIONS, user_id=before.user_id)
        changing.set()
        await until_blocking(tx, lambda: len(ended) == len(others) - 1)
        ended.append("change")

    async def start(user: User, session: str) -> None:
        await services.sessions.start(user, by_password(), HERE, "", session=session)
        ended.append("replaced" if session else "other")

    changing = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(services.database.transaction, change)
        await changing.wait()
        nursery.start_soon(start, others[0], old.secret)
        for user in others[1:]:
            nursery.start_soon(start, user, "")
    assert ended[-1] == "replaced"
    assert ended.index("change") == len(others) - 1
    assert await services.sessions.look_up(old.secret, HERE) is None
