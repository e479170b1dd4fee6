"""The outcomes that no state of an account forces: a slow sign-in, and mails that have always expired.

The classes take the place of their base classes while there are test players. Otherwise, they are not used at all.
"""

from typing import Any

from trio import sleep

from sso.accounts.login.password_login import PasswordLogin, StartSession
from sso.accounts.mailed_link_store import MailedLinks
from sso.accounts.model import SecondFactorRequired, SignedIn, User, login_key
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.session_store import Session
from sso.accounts.test_players.outcomes import EXPIRED, SLOW, SLOW_S
from sso.core.net import Address
from sso.db.transaction import Runner


class DelayedPasswordLogin(PasswordLogin):
    """Waits before the check of a slow player begins, so that it holds no database connection and no hashing slot."""

    async def check_password(
        self, login: str, password: str, address: Address, device: str = ""
    ) -> SignedIn | SecondFactorRequired:
        await _delay(login)
        return await super().check_password(login, password, address, device)

    async def start_session(
        self, login: str, password: str, address: Address, device: str, start: StartSession
    ) -> Session | SecondFactorRequired:
        await _delay(login)
        return await super().start_session(login, password, address, device, start)


async def _delay(login: str) -> None:
    if login_key(login) == SLOW.login_key:
        await sleep(SLOW_S)


class ExpiringMailedLinks(MailedLinks):
    async def create(
        self, tx: Runner, purpose: str, path: str, life_s: int, user_id: str | None = None, **data: Any
    ) -> str:
        return await super().create(tx, purpose, path, 0 if user_id == EXPIRED.user_id else life_s, user_id, **data)


class ExpiringSecondFactors(SecondFactors):
    def code_life_s(self, user: User) -> int:
        return 0 if user.user_id == EXPIRED.user_id else super().code_life_s(user)
