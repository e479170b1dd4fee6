"""The section of the account page about second factors."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.second_factor.recovery_codes import CODES, RecoveryCodes
from sso.accounts.sessions import Session


class SecondFactorSection:
    def __init__(self, recovery_codes: RecoveryCodes) -> None:
        self._recovery_codes = recovery_codes

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        user = session.user
        left = await self._recovery_codes.count_left(user.user_id) if user.second_factors else 0
        return {"recovery_codes_left": left, "recovery_codes_total": CODES}
