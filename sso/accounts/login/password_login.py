"""Password and second-factor checks for the login operation, the login pages and game sessions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog

from sso.accounts.authentication_context import AuthenticationContext, by_password
from sso.accounts.errors import AccountClosed, InvalidCredentials, LoginBusy, TooManyAttempts
from sso.accounts.login.login_metrics import CODE, PASSWORD, count_login
from sso.accounts.login.rate_limit import LoginAttempt, LoginRateLimiter
from sso.accounts.model import SecondFactorRequired, SignedIn, User, login_key
from sso.accounts.password_rules import check_length, check_new_password
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.session_store import Session
from sso.accounts.user_store import UserStore
from sso.core.brand import CurrentBrand
from sso.core.fair_queue import QueueFull
from sso.core.net import SITE_FACTOR, Address, client_networks
from sso.core.passwords import Hasher
from sso.db.errors import DatabaseError
from sso.db.rate_limit import RateLimiter

BUSY_RETRY_S = 2
NEW_PASSWORDS_PER_MINUTE = 20  # for one account

log = structlog.get_logger()

T = TypeVar("T")
StartSession = Callable[[SignedIn, Mapping[str, Any]], Awaitable[Session]]


class PasswordLogin:
    """``device`` names a device that has logged in to the account before; its failures are counted separately."""

    def __init__(
        self,
        users: UserStore,
        hasher: Hasher,
        factors: SecondFactors,
        rate_limiter: LoginRateLimiter,
        new_passwords: RateLimiter,
        brand: CurrentBrand,
    ) -> None:
        self._users = users
        self._hasher = hasher
        self._factors = factors
        self.rate_limiter = rate_limiter
        self._new_passwords = new_passwords
        self._brand = brand

    async def check_password(
        self, login: str, password: str, address: Address, device: str = ""
    ) -> SignedIn | SecondFactorRequired:
        """Raises InvalidCredentials, with the same duration and text whether or not the user exists.

        Raises AccountClosed if the password is correct and the account is going to be deleted.
        """

        async def count(user: User, attempt: LoginAttempt) -> SignedIn:
            await self.rate_limiter.record_success(attempt)
            return SignedIn(user, by_password())

        return await count_login(PASSWORD, self._check_password(login, password, address, device, count))

    async def start_session(
        self, login: str, password: str, address: Address, device: str, start: StartSession
    ) -> Session | SecondFactorRequired:
        """Like `check_password`. If nothing else is required, one statement starts a session and counts the login.

        ``start`` passes its second argument to `SessionStore.start`, as ``success``.
        """

        async def count_and_start(user: User, attempt: LoginAttempt) -> Session:
            return await start(SignedIn(user, by_password()), self.rate_limiter.success_columns(attempt))

        return await count_login(PASSWORD, self._check_password(login, password, address, device, count_and_start))

    async def _check_password(
        self,
        login: str,
        password: str,
        address: Address,
        device: str,
        finish: Callable[[User, LoginAttempt], Awaitable[T]],
    ) -> T | SecondFactorRequired:
        """``finish`` counts the attempt as a success and returns the result, unless the login requires more."""
        attempt = LoginAttempt(login_key(login), address, device)
        async with self._hashing(attempt):
            user = await self.rate_limiter.admit(attempt)
            matches = await self._hasher.matches(user.password_hash if user else None, password)
            if not matches or user is None or (user.disabled and not user.is_closed):
                await self.rate_limiter.record_failure(attempt, user)
                raise InvalidCredentials
        # The slot is free from here on, so that others are checked while this login is counted.
        result: T | SecondFactorRequired
        if user.second_factors or user.is_closed:
            await self.rate_limiter.record_success(attempt, clears=not user.second_factors)
            result = SecondFactorRequired(user)
        else:
            result = await finish(user, attempt)
        if user.password_hash and self._hasher.needs_rehash(user.password_hash):
            await self._rehash(user, password)
        if user.is_closed:
            raise AccountClosed(user, "login", needs_code=bool(user.second_factors))
        return result

    async def _rehash(self, user: User, password: str) -> None:
        """Stores a hash with today's parameters. A failure does not undo the login: the next one tries again."""
        try:
            await self._users.rehash(user, await self._hasher.hash(password))
        except DatabaseError as error:
            log.warning("login.rehash_failed", reason=str(error))

    async def check_code(
        self, user: User, code: str, address: Address, device: str = "", first: AuthenticationContext | None = None
    ) -> SignedIn:
        """Checks the code of a user whose first factor was correct: ``first``, or the password.

        Raises InvalidCredentials, TooManyAttempts or SecondFactorBlocked.
        """
        return await count_login(CODE, self._check_code(user, code, address, device, first or by_password()))

    async def _check_code(
        self, user: User, code: str, address: Address, device: str, first: AuthenticationContext
    ) -> SignedIn:
        attempt = LoginAttempt(user.login_key, address, device)
        await self.rate_limiter.charge(attempt)
        factor = await self._factors.check(user, code)
        if not factor:
            await self.rate_limiter.record_wrong_code(attempt, user)
            raise InvalidCredentials
        await self.rate_limiter.refund(attempt)
        return SignedIn(user, first.with_code(factor))

    async def confirm_password(self, user: User, password: str, address: Address, device: str) -> bool:
        """Checks the password of a user who is signed in, before a change to the account."""
        attempt = LoginAttempt(user.login_key, address, device)
        async with self._hashing(attempt):
            return await self._confirm(user, password, attempt)

    async def new_password_hash(self, user: User, current: str, new: str, address: Address, device: str) -> str | None:
        """Returns the hash of the new password, or None if the current password is wrong.

        Raises UnacceptablePassword, or TooManyAttempts.
        """
        check_length(new)
        attempt = LoginAttempt(user.login_key, address, device)
        async with self._hashing(attempt):
            if not await self._confirm(user, current, attempt):
                return None
            await self._judge_new_password(user.login, user.nick, new)
            return await self._hasher.hash(new)

    async def hash_new_password(self, new: str, login: str, nick: str, address: Address) -> str:
        """Returns the hash of the new password of a person who has proved to be the owner of ``login``.

        Raises UnacceptablePassword, TooManyAttempts, or LoginBusy if the queue of passwords to hash is full. A password
        that is not accepted counts like a failed login from the address, unless its length is the reason.
        """
        check_length(new)
        async with self._hashing(LoginAttempt(login_key(login), address)):
            await self.rate_limiter.charge_address(address)
            await self._judge_new_password(login, nick, new)
            await self.rate_limiter.refund_address(address)
            return await self._hasher.hash(new)

    async def _judge_new_password(self, login: str, nick: str, new: str) -> None:
        """Counts the password for its account before its strength is estimated.

        Failed logins have another counter: a stranger who guesses passwords does not keep the owner
        from choosing a new one.
        """
        if wait_s := await self._new_passwords.add_subject(login_key(login)):
            raise TooManyAttempts(wait_s)
        await self._hasher.check_new(check_new_password, new, (login, nick, self._brand.name))

    async def _confirm(self, user: User, password: str, attempt: LoginAttempt) -> bool:
        await self.rate_limiter.admit(attempt)
        if await self._hasher.matches(user.password_hash, password):
            await self.rate_limiter.record_success(attempt, clears=not user.second_factors)
            return True
        await self.rate_limiter.record_failure(attempt)
        return False

    @asynccontextmanager
    async def _hashing(self, attempt: LoginAttempt) -> AsyncIterator[None]:
        """Waits for a hashing slot before the counters are read, so that a burst of guesses cannot outrun the counters.

        Failures are counted in the slot. Correct logins are counted after it, so a burst of them may exceed their limit
        by those that are being counted.

        Slots are shared fairly between networks and accounts. A known device does not share its account's slots with
        unknown devices.
        """
        try:
            async with self._hasher.queue.slot(attempt.counter, *_network_keys(attempt.address)):
                yield
        except QueueFull:
            raise LoginBusy(BUSY_RETRY_S) from None


def _network_keys(address: Address) -> tuple[Hashable, ...]:
    """Returns the fair-queue keys of an address: the IPv4 address, or the IPv6 /64 and a share of its /48.

    All networks of one /48 together hold at most ``SITE_FACTOR`` slots.
    """
    network, site = client_networks(address)
    if site is None:
        return (network,)
    return network, (site, (int(address) >> 64) % SITE_FACTOR)
