"""Sign-ins at the same instant share their statements, and nothing else: each gets what it would get alone."""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any

import pytest
import trio

from sso.accounts.errors import InvalidCredentials, TooManyAttempts
from sso.accounts.login_rate_limit import LoginAttempt, LoginRateLimiter
from sso.accounts.model import LoginOptions, User
from sso.core.ids import digest
from sso.core.net import parse_address
from sso.db.batch.statement_batch import MAX_CONCURRENT_BATCHES
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.services import Services
from tests.kit.builders import PASSWORD, add_user

HERE, THERE = parse_address("192.0.2.1"), parse_address("192.0.2.2")
MANY = MAX_CONCURRENT_BATCHES + 6  # the first calls may run alone; the others share a batch
PER_ADDRESS = 10

_COUNT = Statement(
    """INSERT INTO throttle (key, failures, since, blocked_until, expires)
    VALUES (:key, 3, now(), now() + make_interval(secs => :wait), now() + interval '15 minutes')"""
)
_BLOCK = Statement("UPDATE throttle SET blocked_until = now() + make_interval(secs => :wait) WHERE key = :key")
_COUNTED = Statement("SELECT key FROM throttle")
_HOLD_SESSIONS = Statement("SELECT id FROM browser_sessions WHERE user_id = :user_id FOR UPDATE")
_HOLD = Statement("SELECT pg_sleep(0.5)")
_RENAME = Statement("UPDATE users SET nick = 'Bob' WHERE user_id = :user_id")


async def together(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """What each gave, or the class of what it raised."""
    outcomes: list[Any] = [None] * len(calls)

    async def one(place: int) -> None:
        try:
            outcomes[place] = await calls[place]
        except (InvalidCredentials, TooManyAttempts) as error:
            outcomes[place] = type(error)

    async with trio.open_nursery() as nursery:
        for place in range(len(calls)):
            nursery.start_soon(one, place)
    return outcomes


@pytest.fixture
def rate_limiter(database: Database) -> LoginRateLimiter:
    return LoginRateLimiter(database, PER_ADDRESS, 0)


async def has_failed(database: Database, name: str, *, wait: float = -1) -> bytes:
    """An account or an address with some failures, blocked for so many seconds."""
    key = digest(name)
    await database.value(_COUNT, key=key, wait=wait)
    return key


async def counted(database: Database) -> set[bytes]:
    return {row["key"] for row in await database.rows(_COUNTED)}


async def test_successes_of_one_account_do_not_stand_in_each_others_way(
    rate_limiter: LoginRateLimiter, database: Database
) -> None:
    await has_failed(database, "account:ann")
    assert (
        await together([rate_limiter.record_success(LoginAttempt("ann", HERE)) for _ in range(MANY)]) == [None] * MANY
    )
    assert await counted(database) == set()


async def test_a_blocked_account_holds_up_no_other(rate_limiter: LoginRateLimiter, database: Database) -> None:
    blocked = {await has_failed(database, f"account:blocked{number}", wait=60) for number in range(MANY)}
    for number in range(MANY):
        await has_failed(database, f"account:free{number}")
    accounts = [f"{kind}{number}" for number in range(MANY) for kind in ("blocked", "free", "new")]
    calls = [rate_limiter.record_success(LoginAttempt(account, HERE)) for account in accounts]
    assert await together(calls) == [TooManyAttempts, None, None] * MANY
    assert await counted(database) == blocked  # who succeeded starts afresh, the others have succeeded in nothing


async def test_a_blocked_address_makes_only_its_own_wait(rate_limiter: LoginRateLimiter, database: Database) -> None:
    address = await has_failed(database, f"address:{HERE}", wait=60)
    other = await has_failed(database, f"address:{THERE}")
    kept = {await has_failed(database, f"account:here{number}") for number in range(MANY)}
    for number in range(MANY):
        await has_failed(database, f"account:there{number}")
    calls = [rate_limiter.record_success(LoginAttempt(f"here{number}", HERE)) for number in range(MANY)]
    calls += [rate_limiter.record_success(LoginAttempt(f"there{number}", THERE)) for number in range(MANY)]
    assert await together(calls) == [TooManyAttempts] * MANY + [None] * MANY
    assert await counted(database) == kept | {address, other}  # a success clears an account, never an address


async def test_the_longer_wait_of_account_and_address_counts(
    rate_limiter: LoginRateLimiter, database: Database
) -> None:
    await has_failed(database, "account:ann", wait=20)
    await has_failed(database, f"address:{HERE}", wait=40)
    for attempt in (rate_limiter.admit, rate_limiter.record_success):
        for address, least in ((HERE, 38), (THERE, 18)):
            with pytest.raises(TooManyAttempts) as refused:
                await attempt(LoginAttempt("ann", address))
            assert least <= refused.value.retry_after <= least + 3


@pytest.mark.parametrize(("wait", "outcome"), [(60.0, TooManyAttempts), (-1.0, None)])
async def test_a_success_counts_only_if_the_failure_before_it_has_blocked_nothing(
    rate_limiter: LoginRateLimiter, database: Database, wait: float, outcome: object
) -> None:
    key = await has_failed(database, "account:ann")
    outcomes: list[object] = []

    async def fail(tx: Transaction) -> None:
        await tx.value(_BLOCK, key=key, wait=wait)
        failing.set()
        await tx.value(_HOLD)

    async def succeed_meanwhile() -> None:
        await failing.wait()
        outcomes.extend(await together([rate_limiter.record_success(LoginAttempt("ann", HERE)) for _ in range(MANY)]))

    failing = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(succeed_meanwhile)
        await database.transaction(fail)
    assert outcomes == [outcome] * MANY
    assert await counted(database) == ({key} if outcome else set())


async def test_who_tries_is_told_with_whether_they_may(services: Services, rate_limiter: LoginRateLimiter) -> None:
    ann, bob = await add_user(services), await add_user(services)
    await has_failed(services.database, f"account:{bob.login_key}", wait=60)
    await has_failed(services.database, f"account:{ann.login_key}")
    logins = [ann.login_key, "nobody", bob.login_key] * MANY
    assert (
        await together([rate_limiter.admit(LoginAttempt(login, HERE)) for login in logins])
        == [ann, None, TooManyAttempts] * MANY
    )


async def test_each_of_several_sign_ins_is_its_own_user(services: Services) -> None:
    people = [await add_user(services) for _ in range(MANY)]

    async def sign_in(login: str, password: str) -> str:
        outcome = await services.password_login.check_password(login, password, HERE)
        return outcome.user.user_id

    calls = [sign_in(user.login, password) for user in people for password in (PASSWORD, "wrong")]
    expected = [[user.user_id, InvalidCredentials] for user in people]
    assert await together(calls) == [outcome for pair in expected for outcome in pair]


async def test_a_user_who_was_disabled_takes_no_other_down(services: Services) -> None:
    good, bad = await add_user(services), await add_user(services)
    await services.users.set_disabled(bad.user_id, disabled=True)
    started = await together([services.sessions.start(user, "login", HERE, "") for user in [good, bad] * MANY])
    assert started[1::2] == [InvalidCredentials] * MANY
    assert len({session.secret for session in started[::2]}) == MANY  # with many browsers at once
    for session in started[::2]:
        assert session.user == good
        assert await services.sessions.look_up(session.secret, HERE) == session
    assert len(await services.sessions.list(good.user_id)) == MANY
    assert await services.sessions.list(bad.user_id) == []


async def test_sign_ins_that_replace_the_same_cookies_all_get_a_session(services: Services) -> None:
    before, user = await add_user(services), await add_user(services)
    old = await services.sessions.start(before, "login", HERE, "")
    owing = await services.sessions.start_challenge(before)
    other = await services.sessions.start(before, "login", HERE, "")
    start = partial(services.sessions.start, user, "login", HERE, "", session=old.secret, visit=owing)
    secrets = {session.secret for session in await together([start() for _ in range(MANY)])}
    assert len(secrets) == MANY
    assert all([await services.sessions.look_up(secret, HERE) for secret in secrets])
    assert await services.sessions.look_up(old.secret, HERE) is None
    assert await services.sessions.challenged_user(owing) is None
    assert await services.sessions.look_up(other.secret, HERE)


async def test_a_session_in_the_other_cookie_ends_as_well(services: Services) -> None:
    user = await add_user(services)
    old, owing = await services.sessions.start(user, "login", HERE, ""), await services.sessions.start_challenge(user)
    await services.sessions.start(user, "login", HERE, "", session=owing, visit=old.secret)
    assert await services.sessions.look_up(old.secret, HERE) is None
    assert await services.sessions.challenged_user(owing) is None


async def test_nobody_waits_for_the_change_of_somebody_else(services: Services) -> None:
    """It may be part of a long one; whom it concerns must know how it ended."""
    changed, *others = [await add_user(services) for _ in range(MANY)]
    ended: list[str] = []

    async def change(tx: Transaction) -> None:
        await tx.value(_RENAME, user_id=changed.user_id)
        changing.set()
        await tx.value(_HOLD)
        ended.append("change")

    async def sign_in_meanwhile() -> None:
        await changing.wait()

        async def sign_in(user: User) -> None:
            await services.sessions.start(user, "login", HERE, "")
            ended.append("changed" if user is changed else "other")

        assert await together([sign_in(user) for user in (*others, changed)]) == [None] * MANY

    changing = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sign_in_meanwhile)
        await services.database.transaction(change)
    assert ended == ["other"] * len(others) + ["change", "changed"]


async def test_tokens_issued_together_are_each_users_own(services: Services) -> None:
    people = [await add_user(services) for _ in range(MANY)]
    gone = await add_user(services)
    await services.users.revoke_all(gone.user_id)
    tokens = services.session_tokens
    calls = [
        tokens.issue(user, "login", LoginOptions(HERE, short_token=bound)) for user in people for bound in (False, True)
    ]
    *issued, nothing = await together([*calls, tokens.issue(gone, "login", LoginOptions(HERE))])
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


async def test_nobody_waits_for_the_session_that_another_browser_came_with(services: Services) -> None:
    before, *others = [await add_user(services) for _ in range(MANY)]
    old = await services.sessions.start(before, "login", HERE, "")
    ended: list[str] = []

    async def change(tx: Transaction) -> None:
        await tx.value(_HOLD_SESSIONS, user_id=before.user_id)
        changing.set()
        await tx.value(_HOLD)
        ended.append("change")

    async def start(user: User, session: str) -> None:
        await services.sessions.start(user, "login", HERE, "", session=session)
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
