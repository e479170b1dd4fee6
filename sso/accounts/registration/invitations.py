"""Invitations: links with which the invited address can create an account. An operator creates and revokes them."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sso.accounts.mailed_link_store import MailedLinks, list_invitations, revoke_invitations
from sso.accounts.model import login_key
from sso.accounts.registration.mails import invitation_mail
from sso.accounts.registration.verification import PATH
from sso.core.brand import CurrentBrand
from sso.core.ids import record_id
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.mail.outbox import Outbox

PURPOSE = "invitation"
DAY_S = 86400


class Invitation(Struct, frozen=True):
    id: str
    login: str
    created: datetime
    expires: datetime


class Invitations:
    def __init__(self, database: Database, links: MailedLinks, outbox: Outbox, brand: CurrentBrand) -> None:
        self._database = database
        self._links = links
        self._outbox = outbox
        self._brand = brand

    async def create(self, login: str, days: int, language: str, *, sends_mail: bool) -> str:
        """Returns the link, and mails it in this language if ``sends_mail``."""
        data = {"id": record_id(), "login": login, "login_key": login_key(login)}

        async def work(tx: Transaction) -> str:
            link = await self._links.create(tx, PURPOSE, PATH, days * DAY_S, **data)
            if sends_mail:
                await self._outbox.put(tx, login, invitation_mail(self._brand.name, link, days), language)
            return link

        return await self._database.transaction(work)

    async def list(self, after_us: int = 0, after_id: str = "", limit: int | None = None) -> list[Invitation]:
        """Returns the invitations that can still be used, oldest first, after the one with this time and id."""
        rows = await list_invitations(self._database, after_us, after_id, limit)
        return [Invitation(row["data"]["id"], row["data"]["login"], row["created"], row["expires"]) for row in rows]

    async def revoke(self, ids: Sequence[str]) -> int:
        """Revokes the invitations with these ids. Returns how many could still be used."""
        return await revoke_invitations(self._database, ids)
