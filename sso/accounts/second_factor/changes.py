"""Turning second factors on and off. A change revokes all sessions and tokens of the user and is announced by mail.

A change contains the ``valid_from`` of the user on which it is based, and has no effect if that has changed since. So
only one of several concurrent changes succeeds. The first factor comes with recovery codes; they go with the last one.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.second_factor.recovery_codes import RecoveryCodes
from sso.accounts.second_factor.store import (
    clear_attempts,
    delete_recovery_codes,
    remove_factors,
    set_email_codes,
    set_totp,
)
from sso.accounts.user_store import get_user, revoke_everything
from sso.core.brand import CurrentBrand
from sso.core.language import Text
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox

SUBJECT = Text("Two-step sign-in for %(service)s was changed")
ADVICE = Text(
    "You have been signed out everywhere else. If this was not you, change your password and ask support for help."
)
WARNING = Text("If this was not you, change your password and ask support for help.")
APP_ON = Text("An authenticator app was set up for your account.")
APP_OFF = Text("The authenticator app was removed from your account.")
MAIL_ON = Text("Codes by e-mail were turned on for your account.")
MAIL_OFF = Text("Codes by e-mail were turned off for your account.")
ALL_OFF = Text("Support has turned off two-step sign-in for your account.")


class FactorChange(Struct, frozen=True):
    """The changed user, and the recovery codes that were made because this is the first second factor."""

    user: User
    recovery_codes: tuple[str, ...] = ()


class SecondFactorChanges:
    """Each method returns None if nothing was changed."""

    def __init__(self, database: Database, recovery_codes: RecoveryCodes, outbox: Outbox, brand: CurrentBrand) -> None:
        self._database = database
        self._recovery_codes = recovery_codes
        self._outbox = outbox
        self._brand = brand

    async def set_totp(self, user: User, totp_sealed: str | None, step: int = 0) -> FactorChange | None:
        """``step`` is the time step of the code that confirmed the secret; it is marked as used."""
        change, event = (APP_ON, EventKind.TOTP_ADDED) if totp_sealed else (APP_OFF, EventKind.TOTP_REMOVED)
        return await self._change(user, "totp", change, event, partial(set_totp, totp_sealed=totp_sealed, step=step))

    async def set_email(self, user: User, on: bool) -> FactorChange | None:
        change, event = (MAIL_ON, EventKind.EMAIL_CODES_ON) if on else (MAIL_OFF, EventKind.EMAIL_CODES_OFF)
        return await self._change(user, "email", change, event, partial(set_email_codes, on=on))

    async def reset(self, user: User) -> FactorChange | None:
        """Removes all second factors, recovery codes and blocks, for an operator whose user has lost them."""
        return await self._change(user, "", ALL_OFF, EventKind.FACTORS_RESET, remove_factors)

    async def _change(
        self,
        user: User,
        factor: str,
        change: Text,
        event: EventKind,
        write: Callable[[Transaction, User], Awaitable[bool]],
    ) -> FactorChange | None:
        async def work(tx: Transaction) -> FactorChange | None:
            if not await write(tx, user):
                return None
            return await self.finish(tx, user, factor, change, event)

        return await self._database.transaction(work)

    async def finish(
        self,
        tx: Transaction,
        user: User,
        factor: str,
        change: Text,
        event: EventKind,
        *,
        revoke: bool = True,
        **detail: object,
    ) -> FactorChange:
        """Does what every change of a factor entails, in its transaction: revocation, notice, history, recovery codes.

        ``user`` is the user before the change.
        """
        if revoke:
            await revoke_everything(tx, user.user_id)
        await clear_attempts(tx, user.user_id, factor)
        content = MailContent(Text(SUBJECT, service=self._brand.name), (change, ADVICE if revoke else WARNING))
        await self._outbox.put(tx, user.login, content, user.lang)
        await record_event(tx, user.user_id, event, **detail)
        changed_user = await get_user(tx, user.user_id)
        return FactorChange(changed_user, await self._update_recovery_codes(tx, user, changed_user))

    async def _update_recovery_codes(self, tx: Transaction, before: User, after: User) -> tuple[str, ...]:
        """Makes codes with the first factor, and deletes them with the last one."""
        if not after.second_factors:
            await delete_recovery_codes(tx, after.user_id)
        elif not before.second_factors:
            return await self._recovery_codes.replace(tx, after.user_id)
        return ()
