"""One statement starts the session of a correct password and counts the login, or does neither."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from sso.accounts.authentication_context import by_password
from sso.accounts.errors import InvalidCredentials, TooManyAttempts
from sso.accounts.login.rate_limit import LoginAttempt, LoginRateLimiter
from sso.accounts.model import SecondFactorRequired, SignedIn, User
from sso.accounts.session_store import Session
from sso.core.ids import digest
from sso.core.net import parse_address
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.services import Services
from tests.kit.builders import PASSWORD, add_user
from tests.kit.conditions import until_blocking
from tests.oauth.in_process import apply_client

HERE = parse_address("192.0.2.1")
LOGINS = 3  # allowed in a minute

_ADD_FAILURES = Statement(
    """INSERT INTO throttle (key, failures, since, blocked_until, expires)
    VALUES (:key, 3, now(), now() + make_interval(secs => :wait), now() + interval '15 minutes')"""
)
_ADD_SITE_SESSION = Statement(
    """INSERT INTO oauth_site_sessions (sid, client_id, user_id, expires)
    VALUES (:sid, :client_id, :user_id, now() + interval '1 day')"""
)
_NOTIFIED = Statement("SELECT sid FROM logout_notifications")
_FAILURES = Statement("SELECT failures FROM throttle WHERE key = :key")
_RENAME = Statement("UPDATE users SET nick = 'Bob' WHERE user_id = :user_id")


@pytest.fixture
def rate_limiter(services: Services) -> LoginRateLimiter:
    return LoginRateLimiter(services.database, per_address=10, logins_per_account=LOGINS)


async def start(services: Services, rate_limiter: LoginRateLimiter, user: User, old: str = "") -> Session:
    success = rate_limiter.success_columns(LoginAttempt(user.login_key, HERE))
    return await services.sessions.start(user, by_password(), HERE, "", session=old, success=success)


async def count(services: Services, counter: str) -> int | None:
    failures: int | None = await services.database.value(_FAILURES, key=digest(counter))
    return failures


async def test_session_counts_a_login_and_deletes_the_failures(
    services: Services, rate_limiter: LoginRateLimiter
) -> None:
    user = await add_user(services)
    await services.database.value(_ADD_FAILURES, key=digest(f"account:{user.login_key}"), wait=-1.0)
    session = await start(services, rate_limiter, user)
    assert await services.sessions.look_up(session.secret, HERE) == session
    assert await count(services, f"account:{user.login_key}") is None
    assert await count(services, f"logins:{user.login_key}") == 1


@pytest.mark.parametrize("counter", ["account:{login}", "address:192.0.2.1"])
async def test_blocked_login_starts_no_session_and_is_not_counted(
    services: Services, rate_limiter: LoginRateLimiter, counter: str
) -> None:
    user = await add_user(services)
    counter = counter.format(login=user.login_key)
    await services.database.value(_ADD_FAILURES, key=digest(counter), wait=60.0)
    with pytest.raises(TooManyAttempts) as refused:
        await start(services, rate_limiter, user)
    assert 50 < refused.value.retry_after <= 61
    assert await services.sessions.list(user.user_id) == []
    assert await count(services, f"logins:{user.login_key}") is None
    assert await count(services, counter) == 3


async def test_blocked_login_in_a_session_ends_it_at_the_sites(
    services: Services, rate_limiter: LoginRateLimiter
) -> None:
    user = await add_user(services)
    await apply_client(services, profile="oidc", backchannel_logout_uri="https://shop.example.com/")
    old = await start(services, rate_limiter, user)
    await services.database.value(_ADD_SITE_SESSION, sid=old.id, client_id="shop", user_id=user.user_id)
    await services.database.value(_ADD_FAILURES, key=digest(f"account:{user.login_key}"), wait=60.0)
    with pytest.raises(TooManyAttempts):
        await start(services, rate_limiter, user, old.secret)
    assert await services.sessions.look_up(old.secret, HERE) is None
    assert await services.database.value(_NOTIFIED) == old.id


async def test_revoked_user_gets_no_session_and_is_not_counted(
    services: Services, rate_limiter: LoginRateLimiter
) -> None:
    user = await add_user(services)
    await services.users.revoke_all(user.user_id)
    with pytest.raises(InvalidCredentials):
        await start(services, rate_limiter, user)
    assert await count(services, f"logins:{user.login_key}") is None


async def test_login_that_waits_for_a_change_of_its_user_is_counted_once(
    services: Services, rate_limiter: LoginRateLimiter
) -> None:
    user = await add_user(services)
    changing = trio.Event()

    async def change(tx: Transaction) -> None:
        await tx.value(_RENAME, user_id=user.user_id)
        changing.set()
        await until_blocking(tx)

    async def sign_in() -> None:
        await changing.wait()
        await start(services, rate_limiter, user)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sign_in)
        await services.database.transaction(change)
    assert await count(services, f"logins:{user.login_key}") == 1
    assert len(await services.sessions.list(user.user_id)) == 1


async def test_session_is_not_started_if_a_second_factor_is_required(services: Services) -> None:
    user = await add_user(services, email_2fa=True)

    async def unexpected(signed_in: SignedIn, success: Mapping[str, Any]) -> Session:
        raise AssertionError("a session was started without the second factor")

    outcome = await services.password_login.start_session(user.login, PASSWORD, HERE, "", unexpected)
    assert isinstance(outcome, SecondFactorRequired)


async def test_one_statement_follows_a_correct_password(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    user, names = await add_user(services), []
    matches, run_sql = services.hasher.matches, services.database.run_sql

    async def match(*arguments: Any) -> bool:
        names.append("password")
        return await matches(*arguments)

    async def record(sql: str, arguments: Any, name: str = "", items: int = 1) -> Any:
        names.append(name)
        return await run_sql(sql, arguments, name, items)

    async def start_session(signed_in: SignedIn, success: Mapping[str, Any]) -> Session:
        return await services.sessions.start(signed_in.user, signed_in.authentication, HERE, "", success=success)

    monkeypatch.setattr(services.hasher, "matches", match)
    monkeypatch.setattr(services.database, "run_sql", record)
    await services.password_login.start_session(user.login, PASSWORD, HERE, "", start_session)
    assert names[names.index("password") :] == ["password", "accounts.session_store.START_AND_COUNT"]
