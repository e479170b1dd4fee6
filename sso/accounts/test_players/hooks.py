"""The outcomes that no state of an account forces: a slow sign-in, and mails that have always expired.

The classes take the place of their base classes while there are test players. Otherwise, they are not used at all.
"""

from typing import Any

from trio import sleep

from sso.accounts.login.password_login import PasswordLogin, StartSession
from sso.accounts.mailed_link_store import MailedLinks
from sso.accounts.model import SecondFactorRequired, SignedIn, User
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.session_store import Session
from sso.accounts.test_players.outcomes import EXPIRED, SLOW, SLOW_S, ForcedOutcome
from sso.accounts.user_store import get_user
from sso.core.net import Address
from sso.db.transaction import Runner


class DelayedPasswordLogin(PasswordLogin):
    """Delays the answer to a slow player who knows the password.

    The player then holds no database connection and no hashing slot. A stranger who guesses is not delayed, because
    the failures must be counted first.
    """

    async def check_password(
        self, login: str, password: str, address: Address, device: str = ""
    ) -> SignedIn | SecondFactorRequired:
        result = await super().check_password(login, password, address, device)
        await _delay(result.user)
        return result

    async def start_session(
        self, login: str, password: str, address: Address, device: str, start: StartSession
    ) -> Session | SecondFactorRequired:
        result = await super().start_session(login, password, address, device, start)
        await _delay(result.user)
        return result


async def _delay(user: User) -> None:
    if _is_player(SLOW, user):
        await sleep(SLOW_S)


class ExpiringMailedLinks(MailedLinks):
    async def create(
        self, tx: Runner, purpose: str, path: str, life_s: int, user_id: str | None = None, **data: Any
    ) -> str:
        if user_id == EXPIRED.user_id and _is_player(EXPIRED, await get_user(tx, user_id)):
            life_s = 0
        return await super().create(tx, purpose, path, life_s, user_id, **data)


class ExpiringSecondFactors(SecondFactors):
    def code_life_s(self, user: User) -> int:
        return 0 if _is_player(EXPIRED, user) else super().code_life_s(user)


def _is_player(player: ForcedOutcome, user: User) -> bool:
    return user.user_id == player.user_id and user.is_test_player
