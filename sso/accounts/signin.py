"""Proving who you are: the one way to a session or a token, for the login operation, pages and game sessions alike."""

from sso.accounts.errors import InvalidCredentials
from sso.accounts.model import SecondFactorNeeded, SignedIn, User, login_key
from sso.accounts.second_factor import SecondFactors
from sso.accounts.throttle import Throttle
from sso.accounts.users import UserStore
from sso.core.net import Address
from sso.core.passwords import Hasher


class SignIn:
    def __init__(self, users: UserStore, hasher: Hasher, factors: SecondFactors, throttle: Throttle) -> None:
        self._users = users
        self._hasher = hasher
        self._factors = factors
        self._throttle = throttle

    async def with_password(self, login: str, password: str, address: Address) -> SignedIn | SecondFactorNeeded:
        """InvalidCredentials takes as long and says the same whether or not there is such a user."""
        account = login_key(login)
        async with self._hasher.slots:  # before the check, so that no burst can run ahead of it
            user = await self._throttle.admit(account, address)
            good = await self._hasher.matches(user.password_hash if user else None, password)
            if not good or user is None or user.disabled:
                await self._throttle.failed(account, address)
                raise InvalidCredentials
        if user.ways:
            await self._throttle.admit(account, address)
        else:
            await self._throttle.succeeded(account, address)
        if user.password_hash and self._hasher.needs_rehash(user.password_hash):
            await self._users.rehash(user, await self._hasher.hash(password))
        return SecondFactorNeeded(user) if user.ways else SignedIn(user, "login")

    async def with_code(self, user: User, code: str, address: Address) -> SignedIn:
        """The second step, for a user whose password was right. Raises SecondFactorBlocked as well."""
        await self._throttle.charge(user.login_key, address)
        if not await self._factors.check(user, code):
            raise InvalidCredentials
        await self._throttle.refund(user.login_key, address)
        return SignedIn(user, "otp")

    async def confirm_password(self, user: User, password: str, address: Address) -> bool:
        """Before something is changed that a borrowed browser must not change."""
        async with self._hasher.slots:
            await self._throttle.admit(user.login_key, address)
            good = await self._hasher.matches(user.password_hash, password)
            if not good:
                await self._throttle.failed(user.login_key, address)
        if good:
            await self._throttle.succeeded(user.login_key, address)
        return good
