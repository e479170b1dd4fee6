"""The second factors that a user had before a moment, such as a change of the e-mail address.

A thief of an account can add second factors to it. Only the earlier ones distinguish the owner from the thief.
Codes by e-mail never do: they are sent to the address that the two dispute.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from sso.accounts.history.events import SUPPORT, EventKind
from sso.accounts.model import User
from sso.accounts.second_factor.recovery_codes import FACTOR as RECOVERY
from sso.db.statement import Statement
from sso.db.transaction import Runner

TOTP, PASSKEY = "totp", "passkey"

# When an app was set up is known from the security history. Support is not the thief.
_EARLIER = Statement(
    """SELECT totp_sealed IS NOT NULL AND NOT EXISTS (SELECT FROM account_events e WHERE e.user_id = u.user_id
            AND e.at >= :before AND e.kind = :app_added AND e.detail ->> 'by' IS DISTINCT FROM :support) AS totp,
        EXISTS (SELECT FROM passkeys p WHERE p.user_id = u.user_id AND p.created < :before) AS passkey,
        EXISTS (SELECT FROM recovery_code_sets s JOIN recovery_codes c USING (user_id)
            WHERE s.user_id = u.user_id AND s.created < :before) AS recovery
    FROM users u WHERE u.user_id = :user_id"""
)


@dataclass(frozen=True)
class EarlierFactors:
    before: datetime
    names: frozenset[str]  # a subset of TOTP, PASSKEY and RECOVERY

    def __bool__(self) -> bool:
        return bool(self.names)

    def narrowed(self, user: User) -> User:
        """Returns the user as if no other factor with codes were on."""
        return replace(user, totp_sealed=user.totp_sealed if TOTP in self.names else None, email_2fa=False)


async def earlier_factors(runner: Runner, user_id: str, before: datetime) -> EarlierFactors:
    row = await runner.row(
        _EARLIER, user_id=user_id, before=before, app_added=str(EventKind.TOTP_ADDED), support=SUPPORT
    )
    names = (TOTP, PASSKEY, RECOVERY)
    return EarlierFactors(before, frozenset(name for name in names if row is not None and row[name]))
