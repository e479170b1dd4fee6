"""Counts logins by method and result, for the metrics."""

from collections.abc import Awaitable
from typing import TypeVar

from sso.accounts.errors import AccountClosed, InvalidCredentials, LoginBusy, SecondFactorBlocked, TooManyAttempts
from sso.accounts.model import SecondFactorRequired
from sso.core.errors import ApiError
from sso.telemetry.counters import LOGINS

T = TypeVar("T")

PASSWORD, CODE, PASSKEY = "password", "code", "passkey"
_RESULTS: dict[type[ApiError], str] = {
    InvalidCredentials: "wrong_credentials",
    TooManyAttempts: "throttled",
    LoginBusy: "busy",
    SecondFactorBlocked: "blocked",
    AccountClosed: "account_closed",
}


async def count_login(method: str, check: Awaitable[T]) -> T:
    """Awaits a check of credentials and counts its result."""
    try:
        outcome = await check
    except ApiError as error:
        LOGINS.add(method, _RESULTS.get(type(error), "failed"))
        raise
    LOGINS.add(method, "code_required" if isinstance(outcome, SecondFactorRequired) else "success")
    return outcome
