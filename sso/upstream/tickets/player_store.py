"""The player of a ticket in the database: found by the store account, or created."""

from dataclasses import dataclass

from sso.accounts.bans.identity_store import link_identity, provider_identity, refuse_banned
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import GUEST_TAG, User
from sso.accounts.nickname import InvalidNickname, parse_nickname
from sso.accounts.user_store import GUEST_LOGIN_KEY, unused_user_id
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.ids import record_id
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.upstream.attempt_store import use_nonce
from sso.upstream.identity_store import find_link, insert_link, touch_link
from sso.upstream.model import IdentityProvider, UpstreamIdentity
from sso.upstream.tickets.model import StoreAccount

# A player who has no login is a guest. Unlike one with the key of a device, this one comes back with any device.
_CREATE = Statement(
    f"""INSERT INTO users (user_id, login, login_key, nick, lang, tags)
    SELECT user_id, '', {GUEST_LOGIN_KEY}, :nick, :lang, ARRAY['{GUEST_TAG}']
    FROM (SELECT CAST(:user_id AS text) AS user_id) AS new_user RETURNING *"""
)


@dataclass(frozen=True)
class Player:
    user: User
    is_new: bool


class TicketUsed(Exception):
    """The ticket has signed in before. The transaction is rolled back."""


class NoPlayer(Exception):
    """No user is linked to the store account, and none may be created. The ticket is not used up."""


async def use_ticket(
    tx: Transaction, provider: IdentityProvider, account: StoreAccount, language: str, address: str, appeal_url: str
) -> Player:
    """Uses the ticket up and returns its player. Raises TicketUsed, NoPlayer, Banned or UniqueViolation.

    UniqueViolation means that another ticket of the same store account has just created the player.
    """
    if not await use_nonce(tx, provider.provider_id, account.ticket_id, account.life_s):
        raise TicketUsed
    link = await find_link(tx, provider.provider_id, account.subject)
    if link is not None:
        link_id, user = link
        await touch_link(tx, link_id, account.name or account.subject, None)
        return Player(user, is_new=False)
    if not provider.create_users:
        raise NoPlayer
    await refuse_banned(tx, provider_identity(provider.provider_id, account.subject), appeal_url)
    return Player(await _create_player(tx, provider, account, language, address), is_new=True)


async def _create_player(
    tx: Transaction, provider: IdentityProvider, account: StoreAccount, language: str, address: str
) -> User:
    user_id = await unused_user_id(tx)
    row = await tx.row(_CREATE, user_id=user_id, nick=_nickname(account, user_id), lang=language)
    identity = UpstreamIdentity(account.subject, account.name or account.subject)
    await insert_link(tx, record_id(), provider.provider_id, user_id, identity, None)
    await link_identity(tx, user_id, provider_identity(provider.provider_id, account.subject))
    actor = AuditActor(user_id=user_id, address=address)
    await trail.write(tx, actor, "user.create", user_id, None, {"provider": provider.provider_id, "tags": [GUEST_TAG]})
    await record_event(tx, user_id, EventKind.REGISTERED)
    await record_event(tx, user_id, EventKind.IDENTITY_LINKED, name=provider.name)
    return User.from_row(row)


def _nickname(account: StoreAccount, user_id: str) -> str:
    try:
        return parse_nickname(account.name)
    except InvalidNickname:
        return f"Player {user_id}"
