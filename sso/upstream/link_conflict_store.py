"""Identities that a user wants to link although they belong to another user. The owner of both decides in the browser.

An identity never moves by itself: the page needs a recent login to the account that has it.
"""

from msgspec import Struct

from sso.accounts.bans.identity_store import provider_identity
from sso.accounts.errors import LastWayToSignIn
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.user_store import can_sign_in, get_user, lock_unchanged_user
from sso.core.ids import digest
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.upstream.identity_store import count_links
from sso.upstream.linked_identities import MAX_LINKS, LinkedIdentities

CONFLICT_S = 1800

_RECORD = Statement(
    """INSERT INTO link_conflicts (user_id, link_id, browser, valid_from, expires)
    SELECT :user_id, id, :browser, :valid_from, now() + make_interval(secs => :life) FROM linked_identities
    WHERE provider_id = :provider_id AND subject = :subject AND user_id <> :user_id
    ON CONFLICT (user_id) DO UPDATE SET link_id = excluded.link_id, browser = excluded.browser,
        valid_from = excluded.valid_from, expires = excluded.expires"""
)
_FIND = """SELECT c.user_id, l.user_id AS owner_id, l.id AS link_id, l.name, l.subject, l.provider_id,
        p.name AS provider_name
    FROM link_conflicts c JOIN linked_identities l ON l.id = c.link_id AND l.user_id <> c.user_id
        JOIN identity_providers p USING (provider_id)
        JOIN users u ON u.user_id = c.user_id AND u.valid_from = c.valid_from AND NOT u.disabled
    WHERE c.expires > now() AND {} ORDER BY c.expires DESC LIMIT 1"""
_FIND_OF_BROWSER = Statement(_FIND.format("c.browser = :browser"))
_FIND_OF_GUEST = Statement(_FIND.format("c.user_id = :user_id AND c.browser IS NULL"))
_USE = Statement(
    """DELETE FROM link_conflicts WHERE user_id = :user_id AND link_id = :link_id AND expires > now()
    RETURNING valid_from"""
)
_MOVE = Statement(
    """UPDATE linked_identities SET user_id = :into, created = now() WHERE id = :link_id AND user_id = :user_id
    RETURNING id"""
)


class LinkConflict(Struct, frozen=True):
    claimant: User  # who wants to link the identity
    owner: User  # who has it
    link_id: str
    provider_id: str
    provider: str
    subject: str
    identity: str  # as the provider calls it

    @property
    def masked_owner(self) -> str:
        return masked_login(self.owner.login)


class LinkConflicts:
    def __init__(self, database: Database, links: LinkedIdentities) -> None:
        self._database = database
        self._links = links

    async def record(self, user: User, provider_id: str, subject: str, browser_secret: str = "") -> None:
        """Remembers for half an hour what the user wanted to link: in this browser, or as a guest in a game."""
        await self._database.value(
            _RECORD,
            user_id=user.user_id,
            valid_from=user.valid_from,
            browser=digest(browser_secret) if browser_secret else None,
            provider_id=provider_id,
            subject=subject,
            life=float(CONFLICT_S),
        )

    async def of_browser(self, browser_secret: str) -> LinkConflict | None:
        return await self._find(_FIND_OF_BROWSER, browser=digest(browser_secret)) if browser_secret else None

    async def of_guest(self, guest_id: str) -> LinkConflict | None:
        return await self._find(_FIND_OF_GUEST, user_id=guest_id)

    async def _find(self, statement: Statement, **values: object) -> LinkConflict | None:
        row = await self._database.row(statement, **values)
        if row is None:
            return None
        claimant = await get_user(self._database, row["user_id"])
        owner = await get_user(self._database, row["owner_id"])
        return LinkConflict(
            claimant, owner, row["link_id"], row["provider_id"], row["provider_name"], row["subject"], row["name"]
        )

    async def move(self, conflict: LinkConflict, owner: User) -> bool:
        """Moves the link, and nothing else, and notifies both. Returns False if something has changed meanwhile.

        ``owner``: the owner as the session of the browser that has decided knows it. Raises LastWayToSignIn.
        """
        return await self._database.transaction(self._move, conflict, owner)

    async def _move(self, tx: Transaction, conflict: LinkConflict, owner: User) -> bool:
        claimant = conflict.claimant
        for user in sorted((owner, claimant), key=lambda user: user.user_id):
            if not await lock_unchanged_user(tx, user):
                return False
        if not await use_conflict(tx, conflict) or await count_links(tx, claimant.user_id) >= MAX_LINKS:
            return False
        names = {"user_id": owner.user_id, "into": claimant.user_id, "link_id": conflict.link_id}
        if await tx.value(_MOVE, **names) is None:
            return False
        if not await can_sign_in(tx, owner.user_id):
            raise LastWayToSignIn  # the transaction is rolled back
        identity = provider_identity(conflict.provider_id, conflict.subject)
        await self._links.bans.link_identity(tx, claimant.user_id, identity)
        await record_event(tx, owner.user_id, EventKind.IDENTITY_UNLINKED, name=conflict.provider)
        await record_event(tx, claimant.user_id, EventKind.IDENTITY_LINKED, name=conflict.provider)
        await self._links.notify_of_move(tx, owner, claimant, conflict.provider, conflict.identity)
        return True


async def use_conflict(tx: Runner, conflict: LinkConflict) -> bool:
    """Uses the question up. Returns False if it was answered, has expired, or its user was revoked since."""
    valid_from = await tx.value(_USE, user_id=conflict.claimant.user_id, link_id=conflict.link_id)
    claimant = await get_user(tx, conflict.claimant.user_id)
    return valid_from == claimant.valid_from and not claimant.disabled


def masked_login(login: str) -> str:
    """Returns enough of an address for its owner to recognize it: ``a•••@e•••.com``."""
    name, _, domain = login.partition("@")
    host, _, end = domain.rpartition(".")
    return f"{name[:1]}•••@{host[:1]}•••.{end}" if name and host else f"{login[:1]}•••"
