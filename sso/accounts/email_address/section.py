"""The section of the account page about the e-mail address."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.email_address.change import EmailChange
from sso.accounts.email_address.verification import EmailVerification
from sso.accounts.sessions import Session
from sso.core.language import Text, plural


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


def next_mail_text(wait_s: int) -> Text:
    """Returns when the next mail may be sent."""
    if wait_s <= 90:
        return plural(
            "You can ask for another e-mail in %(count)s second.",
            "You can ask for another e-mail in %(count)s seconds.",
            wait_s,
        )
    return plural(
        "You can ask for another e-mail in %(count)s minute.",
        "You can ask for another e-mail in %(count)s minutes.",
        -(-wait_s // 60),
    )
