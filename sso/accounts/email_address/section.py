"""The section of the account page about the e-mail address."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.email_address.change import EmailChange
from sso.accounts.email_address.undo import EmailUndo, UndoLink
from sso.accounts.email_address.verification import EmailVerification
from sso.accounts.history.texts import format_time
from sso.accounts.login.messages import next_mail_text
from sso.accounts.session_store import Session
from sso.core.language import Text
from sso.web.language import _

CANNOT_BE_ENDED = _(
    "It can be made invalid only with an authenticator app, a passkey or a recovery code that your account had more "
    "than a day before the change."
)


class EmailSection:
    def __init__(self, verification: EmailVerification, change: EmailChange, undo: EmailUndo) -> None:
        self._verification = verification
        self._change = change
        self._undo = undo

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        user = session.user
        wait_s = 0 if user.email_verified else await self._verification.wait_s(user)
        links = await self._undo.links(user)
        earlier = await self._undo.factors_to_end_links(user) if links else None
        return {
            "verification_wait": next_mail_text(wait_s) if wait_s else None,
            "pending_email": await self._change.pending(user),
            "undo_links": [_undo_text(link) for link in links],
            "undo_factors": earlier.names if earlier else (),
            "cannot_be_ended": CANNOT_BE_ENDED,
        }


def _undo_text(link: UndoLink) -> Text:
    if link.until is None:
        text = _("The change of your address can be undone until %(time)s with a link that we sent to %(address)s.")
    else:
        text = _(
            "The link that we sent to %(address)s was used. It can undo the change of your address after %(time)s."
        )
    return Text(text, address=link.login, time=format_time(link.until or link.expires))
