"""The player of a ticket in the database: found by the store account, or created."""

from msgspec import Struct

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import GUEST_TAG, User
from sso.accounts.nickname import InvalidNickname, parse_nickname
from sso.accounts.user_store import GUEST_LOGIN_KEY, unused_user_id
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.upstream.attempt_store import use_nonce
from sso.upstream.identity_store import count_links, find_link, lock_user_of_links, touch_link
from sso.upstream.linked_identities import MAX_LINKS, LinkedIdentities
from sso.upstream.model import IdentityProvider, UpstreamIdentity
from sso.upstream.tickets.model import StoreAccount

# A player who has no login is a guest. Unlike one with the key of a device, this one comes back with any device.
_CREATE = Statement(
    f"""INSERT INTO users (user_id, login, login_key, nick, lang, tags)
    SELECT user_id, '', {GUEST_LOGIN_KEY}, :nick, :lang, ARRAY['{GUEST_TAG}']
    FROM (SELECT CAST(:user_id AS text) AS user_id) AS new_user RETURNING *"""
)


class Player(Struct, frozen=True):
    user: User
    is_new: bool


class TicketUsed(Exception):
    """The ticket has signed in before. The transaction is rolled back."""


class NoPlayer(Exception):
    """No user is linked to the store account, and none may be created. The ticket is not used up."""


class LinkedElsewhere(Exception):
    """The store account is linked to another user than the one who wants to link it. The ticket is not used up."""


async def use_ticket(
    tx: Transaction,
    links: LinkedIdentities,
    provider: IdentityProvider,
    account: StoreAccount,
    guest: User | None,
    language: str,
    address: str,
) -> Player:
    """Uses the ticket up and returns its player: the linked one, the guest who links it, or a new one.

    Raises TicketUsed, NoPlayer, LinkedElsewhere, Banned or UniqueViolation. The last means that another ticket of the
    same store account has just been linked.
    """
    if not await use_nonce(tx, provider.provider_id, account.ticket_id, account.life_s):
        raise TicketUsed
    link = await find_link(tx, provider.provider_id, account.subject)
    if link is not None:
        link_id, user = link
        if guest is not None and guest.user_id != user.user_id:
            raise LinkedElsewhere
        await touch_link(tx, link_id, account.name or account.subject, None)
        return Player(user, is_new=False)
    if guest is not None:
        return await _link_guest(tx, links, provider, account, guest)
    if not provider.create_users:
        raise NoPlayer
    return Player(await _create_player(tx, links, provider, account, language, address), is_new=True)


async def _link_guest(
    tx: Transaction, links: LinkedIdentities, provider: IdentityProvider, account: StoreAccount, guest: User
) -> Player:
    locked = await lock_user_of_links(tx, guest)
    if locked is None or not locked.is_guest or await count_links(tx, guest.user_id) >= MAX_LINKS:
        raise NoPlayer
    await links.insert(tx, guest.user_id, provider, _identity(account))
    await record_event(tx, guest.user_id, EventKind.IDENTITY_LINKED, name=provider.name)
    return Player(locked, is_new=False)


async def _create_player(
    tx: Transaction,
    links: LinkedIdentities,
    provider: IdentityProvider,
    account: StoreAccount,
    language: str,
    address: str,
) -> User:
    user_id = await unused_user_id(tx)
    row = await tx.row(_CREATE, user_id=user_id, nick=_nickname(account, user_id), lang=language)
    await links.insert(tx, user_id, provider, _identity(account))
    actor = AuditActor(user_id=user_id, address=address)
    await trail.write(tx, actor, "user.create", user_id, None, {"provider": provider.provider_id, "tags": [GUEST_TAG]})
    await record_event(tx, user_id, EventKind.REGISTERED)
    await record_event(tx, user_id, EventKind.IDENTITY_LINKED, name=provider.name)
    return User.from_row(row)


def _identity(account: StoreAccount) -> UpstreamIdentity:
    return UpstreamIdentity(account.subject, account.name or account.subject)


def _nickname(account: StoreAccount, user_id: str) -> str:
    try:
        return parse_nickname(account.name)
    except InvalidNickname:
        return f"Player {user_id}"
