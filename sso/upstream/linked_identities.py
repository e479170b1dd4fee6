"""Links identities to users, who are notified. An identity belongs to one user; a user may have several."""

from collections.abc import Mapping
from typing import Any

import orjson

from sso.accounts.bans.identity_store import provider_identity, refuse_banned
from sso.accounts.bans.operations import BanOperations
from sso.accounts.errors import LastWayToSignIn
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.user_store import can_sign_in, get_user, lock_user
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import record_id
from sso.core.language import Text
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox
from sso.upstream.identity_store import (
    LinkedIdentity,
    count_links,
    delete_link,
    find_link,
    insert_link,
    list_links,
    lock_user_of_links,
    touch_link,
)
from sso.upstream.model import IdentityProvider, UpstreamIdentity

MAX_LINKS = 20  # for one user

LINKED_SUBJECT = Text("A new way to sign in to %(service)s")
LINKED = Text("Your account can now be used with %(provider)s (%(identity)s).")
GUEST_ADDED = Text("A guest of a game was added to your account. The device of the guest can sign in to it now.")
UNLINKED_SUBJECT = Text("A way to sign in to %(service)s was removed")
UNLINKED = Text("Your account can no longer be used with %(provider)s.")
ADVICE = Text("If this was not you, sign in, remove what you do not know and change your password.")


class IdentityTaken(Exception):
    """The identity is linked to another user, or the user has too many."""


class LinkedIdentities:
    def __init__(
        self,
        database: Database,
        keyring: Keyring,
        outbox: Outbox,
        brand: CurrentBrand,
        bans: BanOperations,
        appeal_url: str,
    ) -> None:
        self.bans = bans
        self._appeal_url = appeal_url
        self._database = database
        self._keyring = keyring
        self._outbox = outbox
        self._brand = brand

    async def use(self, provider: IdentityProvider, identity: UpstreamIdentity) -> User | None:
        """Returns the user of an identity and marks the identity as used. Returns None if it is not linked."""
        link = await find_link(self._database, provider.provider_id, identity.subject)
        if link is None:
            return None
        link_id, user = link
        await touch_link(self._database, link_id, identity.name, self._seal(provider, link_id, identity))
        return user

    async def list(self, user_id: str) -> list[LinkedIdentity]:
        return await list_links(self._database, user_id)

    async def link(self, user: User, provider: IdentityProvider, identity: UpstreamIdentity) -> bool:
        """Links an identity and notifies the owner. Returns False if the user was revoked since it was read.

        Raises IdentityTaken.
        """

        async def work(tx: Transaction) -> bool:
            locked = await lock_user_of_links(tx, user)
            if locked is None:
                return False
            if await count_links(tx, user.user_id) >= MAX_LINKS:
                raise IdentityTaken
            await self.insert(tx, user.user_id, provider, identity)
            await record_event(tx, user.user_id, EventKind.IDENTITY_LINKED, name=provider.name)
            change = Text(LINKED, provider=provider.name, identity=identity.name or identity.subject)
            await self._notify(tx, locked, LINKED_SUBJECT, change)
            return True

        try:
            return await self._database.transaction(work)
        except UniqueViolation:
            raise IdentityTaken from None

    async def insert(
        self, tx: Transaction, user_id: str, provider: IdentityProvider, identity: UpstreamIdentity
    ) -> None:
        """Links an identity in the transaction of the caller. Raises Banned if it was banned with another user."""
        digest = provider_identity(provider.provider_id, identity.subject)
        await refuse_banned(tx, digest, self._appeal_url)
        await self.bans.link_identity(tx, user_id, digest)
        link_id = record_id()
        await insert_link(tx, link_id, provider.provider_id, user_id, identity, self._seal(provider, link_id, identity))

    async def unlink(self, user: User, link_id: str, actor: AuditActor | None = None) -> bool:
        """Removes a link and notifies the owner. Returns False if it does not exist. Raises LastWayToSignIn.

        With an ``actor``, an administrator, the audit trail gets an entry, and the user may be disabled or revoked.
        Without one, the user acts, and False is also returned if the user was revoked since it was read.
        """

        async def work(tx: Transaction) -> bool:
            locked = await (lock_user(tx, user.user_id) if actor else lock_user_of_links(tx, user))
            if locked is None:
                return False
            name = await delete_link(tx, user.user_id, link_id)
            if name is None:
                return False
            if not await can_sign_in(tx, user.user_id):
                raise LastWayToSignIn  # the transaction is rolled back
            await record_event(tx, user.user_id, EventKind.IDENTITY_UNLINKED, name=name)
            await self._notify(tx, locked, UNLINKED_SUBJECT, Text(UNLINKED, provider=name))
            await audit_unlink(tx, actor, user.user_id, link_id)
            return True

        return await self._database.transaction(work)

    async def notify_of_move(
        self, tx: Transaction, owner: User, user: User, provider_name: str, identity_name: str
    ) -> None:
        """Tells both users that an identity was moved from one to the other, as after an unlink and a link."""
        await self._notify(tx, owner, UNLINKED_SUBJECT, Text(UNLINKED, provider=provider_name))
        if user.login:  # a guest has no address
            change = Text(LINKED, provider=provider_name, identity=identity_name)
            await self._notify(tx, user, LINKED_SUBJECT, change)

    async def notify_of_guest(self, tx: Transaction, user_id: str) -> None:
        """Tells the owner of an account that a guest was merged into it."""
        await self._notify(tx, await get_user(tx, user_id), LINKED_SUBJECT, GUEST_ADDED)

    async def _notify(self, tx: Transaction, user: User, subject: Text, change: Text) -> None:
        content = MailContent(Text(subject, service=self._brand.name), (change, ADVICE))
        await self._outbox.put(tx, user.login, content, user.lang)

    def _seal(self, provider: IdentityProvider, link_id: str, identity: UpstreamIdentity) -> str | None:
        """Returns the encrypted tokens, or None if the provider is not configured to keep them."""
        if not provider.keep_tokens or not identity.tokens:
            return None
        return self._keyring.encrypt(tokens_purpose(link_id), orjson.dumps(dict(identity.tokens)).decode())

    def tokens(self, link_id: str, tokens_sealed: str) -> Mapping[str, Any]:
        """Returns the tokens that were kept."""
        tokens: Mapping[str, Any] = orjson.loads(self._keyring.decrypt(tokens_purpose(link_id), tokens_sealed))
        return tokens


def tokens_purpose(link_id: str) -> str:
    return column_purpose("linked_identities.tokens_sealed", link_id)


async def audit_unlink(tx: Transaction, actor: AuditActor | None, user_id: str, link_id: str) -> None:
    """Writes that the actor, if there is one, has removed a way in which the user signs in."""
    if actor is not None:
        await trail.write(tx, actor, "user.unlink", user_id, {"link": link_id}, {"link": None})
