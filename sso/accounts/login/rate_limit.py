"""Limits login attempts per account and per client network. The counters are in the database, shared by all workers.

A failed attempt is counted after the password was checked, and its result is disclosed only if no counter was blocked
at that moment. So a hundred concurrent guesses learn no more results than the limits allow, and a hundred concurrent
correct logins do not hinder each other.
"""

from typing import Any

import trio
from msgspec import Struct

from sso.accounts.errors import TooManyAttempts
from sso.accounts.history.events import EventKind, record_failure
from sso.accounts.history.failed_logins import FailedLogins
from sso.accounts.login.rate_limit_store import LoginCounter, LoginCounterStore
from sso.accounts.model import User
from sso.core.ids import digest
from sso.core.net import SITE_FACTOR, Address, client_networks
from sso.db.database import Database
from sso.telemetry.counters import THROTTLED_REQUESTS

FREE_FAILURES = 5  # for an account; the fifth and each further one blocks it, for a second at first


class LoginAttempt(Struct, frozen=True):
    """An attempt to log in to an account. Failures of a known device have a counter of their own."""

    account: str  # the login key
    address: Address
    device: str = ""  # the name of a device that has logged in to this account before

    @property
    def counter(self) -> str:
        """The counter of failures."""
        return f"device:{self.account}:{self.device}" if self.device else f"account:{self.account}"

    @property
    def logins_counter(self) -> str:
        """The counter of logins. Known devices have another one, so that an attacker with a stolen password but without
        the second factor does not use up the owner's logins."""
        return f"known logins:{self.account}" if self.device else f"logins:{self.account}"


class LoginRateLimiter:
    def __init__(self, database: Database, per_address: int, logins_per_account: int) -> None:
        self._database = database
        self._per_address = per_address
        self._logins_per_account = logins_per_account
        self._store = LoginCounterStore(database)
        self.failed_logins = FailedLogins(database)

    async def admit(self, attempt: LoginAttempt) -> User | None:
        """Returns the user of the account, if there is one. Raises TooManyAttempts if a counter is blocked."""
        address_key, site_key = self._network_keys(attempt.address)
        row = await self._store.admit(
            account=attempt.account,
            account_key=digest(attempt.counter),
            logins_key=self._logins_key(attempt),
            address_key=address_key,
            site_key=site_key,
        )
        raise_if_blocked(row["wait"])
        user = None if row["user_id"] is None else User.from_row(row)
        return user if user and user.login_key == attempt.account else None

    async def record_failure(self, attempt: LoginAttempt, user: User | None = None) -> None:
        """Counts a failure, and adds it to the history of the user soon afterwards.

        Raises TooManyAttempts if a counter was blocked: then the result must not be disclosed.
        """
        await self.charge(attempt)
        if user:
            self.failed_logins.add(user.user_id, str(attempt.address))

    async def charge(self, attempt: LoginAttempt) -> None:
        """Counts an attempt before it is checked. Raises TooManyAttempts if it must not be checked at all."""
        await self._charge_counters(self._counters(attempt))

    async def charge_address(self, address: Address) -> None:
        """Like `charge`, for an attempt that does not name its account, such as the answer of a passkey."""
        if self._per_address:
            await self._charge_counters(self._network_counters(address))

    async def refund_address(self, address: Address) -> None:
        """Takes back `charge_address` after a correct attempt."""
        if self._per_address:
            await self._store.refund(self._network_counters(address))

    async def record_wrong_code(self, attempt: LoginAttempt, user: User) -> None:
        """Adds a wrong code, which was charged before, to the history of the user."""
        await record_failure(self._database, user.user_id, EventKind.CODE_FAILED, str(attempt.address))

    async def _charge_counters(self, counters: list[LoginCounter]) -> None:
        with trio.CancelScope(shield=True):  # count it even if the client has disconnected; the database has a deadline
            wait = await self._store.charge(counters)
        raise_if_blocked(wait)

    async def refund(self, attempt: LoginAttempt) -> None:
        """Takes back the charge of an attempt that was correct, and clears the failures of its account."""
        await self._store.refund(self._counters(attempt))

    async def record_success(self, attempt: LoginAttempt, *, clears: bool = True) -> None:
        """Counts a correct password. With ``clears``, deletes the failures of the account.

        Raises TooManyAttempts if a counter is blocked: then the result must not be disclosed.
        """
        raise_if_blocked(await self._store.count_success(**self.success_columns(attempt, clears=clears)))

    def success_columns(self, attempt: LoginAttempt, *, clears: bool = True) -> dict[str, Any]:
        """Returns the values of SUCCESS_COLUMNS, for a statement that counts the success as a part of it.

        Such a statement has no other effect on an attempt with ``wait``, and its caller calls `raise_if_blocked`.
        """
        address_key, site_key = self._network_keys(attempt.address)
        return {
            "account_key": digest(attempt.counter),
            "logins_key": self._logins_key(attempt),
            "address_key": address_key,
            "site_key": site_key,
            "clears": clears,
            "max_logins": self._logins_per_account,
        }

    def passkey_columns(self, user: User) -> dict[str, Any]:
        """Like `success_columns`, for a sign-in with a passkey, which has a counter of its own."""
        key = digest(f"passkey logins:{user.login_key}") if self._logins_per_account else None
        return {
            "account_key": key,  # refuses the sign-in while it is blocked
            "logins_key": key,
            "address_key": None,
            "site_key": None,
            "clears": False,
            "max_logins": self._logins_per_account,
        }

    def _logins_key(self, attempt: LoginAttempt) -> bytes | None:
        return digest(attempt.logins_counter) if self._logins_per_account else None

    def _network_keys(self, address: Address) -> tuple[bytes | None, bytes | None]:
        """Returns the keys of the client's network and of its IPv6 site."""
        if not self._per_address:
            return None, None
        network, site = client_networks(address)
        return digest(f"address:{network}"), digest(f"address:{site}") if site else None

    def _counters(self, attempt: LoginAttempt) -> list[LoginCounter]:
        """Returns the counters that a failure is charged to: the account's, with backoff, and the networks'."""
        return [LoginCounter(digest(attempt.counter), FREE_FAILURES, True), *self._network_counters(attempt.address)]

    def _network_counters(self, address: Address) -> list[LoginCounter]:
        keys = zip(self._network_keys(address), (1, SITE_FACTOR), strict=True)
        return [LoginCounter(key, factor * self._per_address, False) for key, factor in keys if key is not None]


def raise_if_blocked(wait: float | None) -> None:
    """Raises TooManyAttempts if there is a time to wait. Then the result of the attempt must not be disclosed."""
    if wait is not None:
        THROTTLED_REQUESTS.add("login")
        raise TooManyAttempts(max(1, int(wait) + 1))
