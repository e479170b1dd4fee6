"""The deletion of an account: it is closed at once and erased after some days, until which it can be kept."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.history.texts import format_day
from sso.accounts.model import User
from sso.accounts.user_store import get_user, lock_user, revoke_everything
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.brand import CurrentBrand
from sso.core.errors import Conflict, Forbidden
from sso.core.language import Text, in_language
from sso.core.moments import rfc3339
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox
from sso.perm.changes.last_administrators import LastAdministrator
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import WRITE, PermissionWriter
from sso.personal_data.erasure_store import (
    close_account,
    keep_account,
    make_erasure_due,
    restore_account,
)
from sso.personal_data.errors import DeletionRefused

BY_USER = "user"  # only they can keep the account themselves

CLOSED_SUBJECT = Text("Your %(service)s account will be deleted")
CLOSED = Text("Your account is closed and will be deleted on %(date)s. You have been signed out everywhere.")
HOW_TO_KEEP = Text("To keep your account, sign in before that day and confirm that you want to keep it:")
ASK_SUPPORT = Text("To keep your account, ask support before that day.")
NOT_YOU = Text("If this was not you, keep your account and change your password.")
KEPT_SUBJECT = Text("Your %(service)s account is kept")
KEPT = Text("Your account will not be deleted. You can sign in as before.")


# Called in the transaction that closes an account, with the user as it is then. Raises an error if it must stay open.
ClosePrecondition = Callable[[Transaction, User], Awaitable[None]]


async def always(_tx: Transaction, _user: User) -> None:
    """The precondition of a deletion that has none."""


class AccountDeletion:
    def __init__(
        self,
        database: Database,
        writer: PermissionWriter,
        outbox: Outbox,
        brand: CurrentBrand,
        base_url: str,
        days: int,
    ) -> None:
        self._database = database
        self._writer = writer
        self._outbox = outbox
        self._brand = brand
        self._base_url = base_url
        self.days = days

    async def request(
        self,
        user: User,
        valid_from: int | None,
        by: str = BY_USER,
        days: int | None = None,
        actor: AuditActor | None = None,
        precondition: ClosePrecondition = always,
    ) -> datetime | None:
        """Closes the account and returns when it will be erased. Everything issued to the user ends.

        The request is based on the user with this ``valid_from``. Returns None if the account is closed already
        or was changed meanwhile. Raises DeletionRefused for the last administrator, and Conflict for a user who was
        merged into another one. An account that is erased at once (``days`` is 0) is not announced. With an ``actor``,
        the audit trail gets an entry. If ``precondition`` raises an error, nothing is changed.
        """
        if by == BY_USER and user.is_test_player:  # the id of an erased user is never used again
            raise Forbidden("the account of a test player cannot be deleted by its user")
        days = self.days if days is None else days

        async def work(tx: Transaction) -> datetime | None:
            if (stored := await lock_user(tx, user.user_id)) is not None:
                if stored.merged_into is not None:  # it is erased with the other one, and a merge can be undone
                    raise Conflict(f"{user.user_id} was merged into {stored.merged_into}")
                await precondition(tx, stored)
            due = await close_account(tx, user.user_id, valid_from, days, by)
            if due is None:
                return None
            await revoke_everything(tx, user.user_id)
            await record_event(tx, user.user_id, EventKind.DELETION_REQUESTED)
            data = {"erasure_due": rfc3339(due)}
            await record_changes(tx, [Change(ChangeType.USER_DELETED, user.user_id, data=data)])
            if actor is not None:
                await trail.write(tx, actor, "user.delete", user.user_id, {"deleted": False}, {"deleted": True})
            if days:
                await self._outbox.put(tx, user.login, self._closed_mail(user, due, by), user.lang)
            return due

        try:
            return (await self._writer.write(WRITE, Scope.account(user.user_id), work)).result
        except LastAdministrator as error:
            raise DeletionRefused(error) from None

    async def make_due(self, user_id: str) -> None:
        """Ends the time in which a closed account can be kept."""
        await make_erasure_due(self._database, user_id)

    async def keep(self, user: User) -> User | None:
        """Cancels the deletion that the user has requested. Of several concurrent calls, one returns the user.

        Returns None if the deletion is no longer pending, if an operator wants it, or if the user was revoked since.
        """

        async def work(tx: Transaction) -> User | None:
            if not await keep_account(tx, user.user_id, user.valid_from):
                return None
            return await self._announce_kept(tx, user)

        return await self._database.transaction(work)

    async def restore(self, user: User, actor: AuditActor) -> User | None:
        """Cancels the deletion, for an operator. A user who was disabled stays disabled.

        Returns None if the account is not going to be deleted, or its erasure has begun.
        """

        async def work(tx: Transaction) -> User | None:
            if not await restore_account(tx, user.user_id):
                return None
            await trail.write(tx, actor, "user.restore", user.user_id, {"deleted": True}, {"deleted": False})
            return await self._announce_kept(tx, user)

        return await self._database.transaction(work)

    async def _announce_kept(self, tx: Transaction, user: User) -> User:
        await record_event(tx, user.user_id, EventKind.DELETION_CANCELLED)
        kept = await get_user(tx, user.user_id)
        data = {"disabled": kept.disabled}
        await record_changes(tx, [Change(ChangeType.USER_RESTORED, user.user_id, data=data)])
        content = MailContent(Text(KEPT_SUBJECT, service=self._brand.name), (KEPT,))
        await self._outbox.put(tx, user.login, content, user.lang)
        return kept

    def _closed_mail(self, user: User, due: datetime, by: str) -> MailContent:
        with in_language(user.lang):
            closed = Text(CLOSED, date=format_day(due))
        subject = Text(CLOSED_SUBJECT, service=self._brand.name)
        if by != BY_USER:
            return MailContent(subject, (closed, ASK_SUPPORT))
        link = f"{self._base_url}/login"
        return MailContent(subject, (closed, HOW_TO_KEEP), (NOT_YOU,), link=link, link_label=Text("Sign in"))
