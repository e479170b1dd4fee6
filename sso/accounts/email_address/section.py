"""The section of the account page about the e-mail address."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.email_address.change import EmailChange
from sso.accounts.email_address.verification import EmailVerification
from sso.accounts.login.messages import next_mail_text
from sso.accounts.sessions import Session


class EmailSection:
    def __init__(self, verification: EmailVerification, change: EmailChange) -> None:
        self._verification = verification
        self._change = change

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        user = session.user
        wait_s = 0 if user.email_verified else await self._verification.wait_s(user)
        return {
            "verification_wait": next_mail_text(wait_s) if wait_s else None,
            "pending_email": await self._change.pending(user),
        }
