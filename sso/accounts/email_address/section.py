"""The section of the account page about the e-mail address."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.email_address.change import EmailChange
from sso.accounts.email_address.undo import EmailUndo, UndoLink
from sso.accounts.email_address.verification import EmailVerification
from sso.accounts.history.texts import format_time
from sso.accounts.login.messages import next_mail_text
from sso.accounts.sessions import Session
from sso.core.language import Text
from sso.web.language import _

NEEDS_SECOND_FACTOR = _("To make it invalid, turn on two-step sign-in first.")


class EmailSection:
    def __init__(self, verification: EmailVerification, change: EmailChange, undo: EmailUndo) -> None:
        self._verification = verification
        self._change = change
        self._undo = undo

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        user = session.user
        wait_s = 0 if user.email_verified else await self._verification.wait_s(user)
        return {
            "verification_wait": next_mail_text(wait_s) if wait_s else None,
            "pending_email": await self._change.pending(user),
            "undo_links": [_undo_text(link) for link in await self._undo.links(user)],
            "needs_second_factor": "" if user.second_factors else NEEDS_SECOND_FACTOR,
        }


def _undo_text(link: UndoLink) -> Text:
    if link.until is None:
        text = _("The change of your address can be undone until %(time)s with a link that we sent to %(address)s.")
    else:
        text = _(
            "The link that we sent to %(address)s was used. It can undo the change of your address after %(time)s."
        )
    return Text(text, address=link.login, time=format_time(link.until or link.expires))
