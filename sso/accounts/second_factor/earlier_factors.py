"""The second factors that a user had before a moment, such as a change of the e-mail address.

A thief of an account can add second factors to it. Only the earlier ones distinguish the owner from the thief.
Codes by e-mail never do: they are sent to the address that the two dispute.
"""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.model import User
from sso.accounts.second_factor.recovery_codes import FACTOR as RECOVERY
from sso.accounts.second_factor.store import read_earlier_factors
from sso.db.transaction import Runner

TOTP, PASSKEY = "totp", "passkey"


class EarlierFactors(Struct, frozen=True):
    before: datetime
    names: frozenset[str]  # a subset of TOTP, PASSKEY and RECOVERY

    def __bool__(self) -> bool:
        return bool(self.names)

    def narrowed(self, user: User) -> User:
        """Returns the user as if no other factor with codes were on."""
        return replace(user, totp_sealed=user.totp_sealed if TOTP in self.names else None, email_2fa=False)


async def earlier_factors(runner: Runner, user_id: str, before: datetime) -> EarlierFactors:
    row = await read_earlier_factors(runner, user_id, before)
    names = (TOTP, PASSKEY, RECOVERY)
    return EarlierFactors(before, frozenset(name for name in names if row is not None and row[name]))
