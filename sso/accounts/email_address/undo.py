"""Undoes a change of the address with a link to the old one.

If the account had a second factor before the change, the first use of the link only requests the undo: both addresses
get a notice, and a use a day later makes it. Until then the owner can make the links invalid with that factor.
Otherwise a reader of the mails to the old address could take the account at any moment. Factors that were added since
the day before the change do not count, because they may be a thief's.
"""

from datetime import UTC, datetime, timedelta

from msgspec import Struct

from sso.accounts.email_address.mails import undo_ended_mail, undo_requested_mail, undone_mail
from sso.accounts.email_address.new_login import UNDO, AddressLink, NewLogin
from sso.accounts.email_address.recent_addition_store import BEFORE_CHANGE_S, remove_recent_additions
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.history.texts import format_time
from sso.accounts.mailed_link_store import (
    MailedLink,
    MailedLinks,
    first_undo_link,
    list_undo_links,
    read_undo_link,
    request_undo,
    revoke_later_undo_links,
)
from sso.accounts.model import User
from sso.accounts.password_reset import requests
from sso.accounts.second_factor.earlier_factors import EarlierFactors, earlier_factors
from sso.accounts.user_change_store import cancel_deletion, restore_verified_at
from sso.accounts.user_store import get_user, lock_user, revoke_everything
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.brand import CurrentBrand
from sso.core.language import in_language
from sso.db.database import Database
from sso.db.transaction import Runner, Transaction
from sso.mail.outbox import Outbox

WAIT_S = 86400
USE_S = 3 * 86400  # a requested undo can be made for at least this time after the wait


class UndoWaits(Struct, frozen=True):
    """The undo was requested. The link makes it after this moment."""

    until: datetime


class UserIsMerged(Exception):
    """The account was merged into another one. The link can be used after the merge was undone."""


class UndoLink(Struct, frozen=True):
    """A link that can undo a change. ``until`` is set if the undo was requested."""

    login: str
    expires: datetime
    until: datetime | None


class EmailUndo:
    def __init__(
        self, database: Database, links: MailedLinks, outbox: Outbox, brand: CurrentBrand, new_login: NewLogin
    ) -> None:
        self._database = database
        self._links = links
        self._outbox = outbox
        self._brand = brand
        self._new_login = new_login

    async def find(self, secret: str) -> AddressLink | None:
        """Returns None if the link was used, has expired or does not exist."""
        return await self._new_login.find(UNDO, secret)

    async def links(self, user: User) -> list[UndoLink]:
        rows = await list_undo_links(self._database, user.user_id)
        return [UndoLink(row["data"]["login"], row["expires"], undo_time(row["data"])) for row in rows]

    async def factors_to_end_links(self, user: User) -> EarlierFactors | None:
        """Returns the factors from before the changes of all links, one of which must be proved to end the links.

        Returns None if there is no link, or no such factor: then the links cannot be ended.
        """
        first = await first_undo_link(self._database, user.user_id)
        return await _factors_before(self._database, user.user_id, first) or None if first else None

    async def must_wait(self, found: AddressLink) -> bool:
        """Returns whether the undo must be requested a day before it is made."""
        return bool(await _factors_before(self._database, found.user.user_id, found.link.created))

    async def end_links(self, user: User) -> None:
        """Makes all links that undo a change of the address invalid. The old addresses get a notice."""

        async def work(tx: Transaction) -> None:
            await lock_user(tx, user.user_id)
            rows = await list_undo_links(tx, user.user_id)
            await self._links.revoke(tx, UNDO, user.user_id)
            for login in dict.fromkeys(row["data"]["login"] for row in rows):
                await self._outbox.put(tx, login, undo_ended_mail(self._brand.name), user.lang)
            if rows:
                await record_event(tx, user.user_id, EventKind.EMAIL_UNDO_ENDED)

        await self._database.transaction(work)

    async def undo(self, secret: str) -> str | UndoWaits | None:
        """Restores the address that the account had before, whatever has changed since, and revokes everything issued.

        Ways to sign in that were added since the day before the change are removed. An account that was closed by its
        user, or by a thief, is kept. Links to addresses of later changes end.

        Returns the secret of a link that resets the password, or None if the link does not work. Returns UndoWaits,
        and changes nothing, if the account had a second factor before the change and the undo was not requested a day
        ago. Raises AddressTaken, or UserIsMerged: the link would be used up, and the account could not sign in.
        """
        if (found := await self.find(secret)) is None:
            return None

        async def work(tx: Transaction) -> str | UndoWaits | None:
            await lock_user(tx, found.user.user_id)
            user = await get_user(tx, found.user.user_id)
            if user.merged_into is not None:
                raise UserIsMerged
            earlier = await _factors_before(tx, user.user_id, found.link.created)
            if earlier and (waits := await self._request(tx, user, secret)):
                return waits
            link = await self._links.use(tx, UNDO, secret)
            if link is None or not await self._new_login.set(tx, link, None):
                return None
            return await self._restore(tx, user, link)

        return await self._new_login.write(found.user.user_id, work)

    async def _request(self, tx: Transaction, user: User, secret: str) -> UndoWaits | None:
        """Requests the undo unless it is requested already. Returns None if it may be made, or the link is invalid."""
        data = await request_undo(tx, secret, WAIT_S, USE_S)
        if data is not None:
            until = undo_time(data)
            assert until is not None
            with in_language(user.lang):
                mail = undo_requested_mail(data["login"], format_time(until), self._brand.name)
            for login in (data["login"], user.login):
                await self._outbox.put(tx, login, mail, user.lang)
            await record_event(tx, user.user_id, EventKind.EMAIL_UNDO_REQUESTED)
            return UndoWaits(until)
        row = await read_undo_link(tx, secret)
        until = undo_time(row["data"]) if row else None
        return UndoWaits(until) if row and until and until.timestamp() > row["now"] else None

    async def _restore(self, tx: Transaction, user: User, link: MailedLink) -> str:
        user_id = user.user_id
        if verified_at := link.data.get("verified_at"):
            await restore_verified_at(tx, user_id, verified_at)
        await revoke_later_undo_links(tx, user_id, link.created)
        await remove_recent_additions(tx, user_id, link.created - timedelta(seconds=BEFORE_CHANGE_S))
        await revoke_everything(tx, user_id)
        if await cancel_deletion(tx, user_id):
            await record_event(tx, user_id, EventKind.DELETION_CANCELLED)
            await record_changes(tx, [Change(ChangeType.USER_RESTORED, user_id, data={"disabled": False})])
        await record_event(tx, user_id, EventKind.EMAIL_CHANGE_UNDONE)
        await self._outbox.put(tx, user.login, undone_mail(self._brand.name), user.lang)
        reset_url = await self._links.create(tx, requests.PURPOSE, "/reset", requests.LINK_S, user_id, next="")
        return reset_url.rpartition("=")[2]


async def _factors_before(runner: Runner, user_id: str, change: datetime) -> EarlierFactors:
    return await earlier_factors(runner, user_id, change - timedelta(seconds=BEFORE_CHANGE_S))


def undo_time(data: dict[str, object]) -> datetime | None:
    """Returns the moment after which the undo can be made, or None if it was not requested."""
    undo_at = data.get("undo_at")
    return datetime.fromtimestamp(float(str(undo_at)), UTC) if undo_at is not None else None
