"""Identities in the database: those that are linked to users, and those that wait for a user.

An identity without a user waits, bound to the browser, until it signs in to an account or creates one.
"""

from datetime import datetime

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from sso.accounts.model import User
from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import digest
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.upstream.model import UpstreamIdentity

PENDING_S = 1800

_PUT = Statement(
    """INSERT INTO pending_identities (id, provider_id, identity_sealed, next, expires)
    VALUES (:id, :provider_id, :identity_sealed, :next, now() + make_interval(secs => :life))
    ON CONFLICT (id) DO UPDATE SET provider_id = excluded.provider_id, identity_sealed = excluded.identity_sealed,
        next = excluded.next, expires = excluded.expires"""
)
_GET = Statement("SELECT * FROM pending_identities WHERE id = :id AND expires > now()")
_USE = Statement(
    """DELETE FROM pending_identities WHERE id = :id AND identity_sealed = :identity_sealed AND expires > now()
    RETURNING id"""
)
_FIND_LINK = Statement(
    """SELECT l.id AS link_id, u.* FROM linked_identities l JOIN users u USING (user_id)
    WHERE l.provider_id = :provider_id AND l.subject = :subject"""
)
_TOUCH_LINK = Statement(
    """UPDATE linked_identities SET last_used = now(), name = :name, tokens_sealed = :tokens_sealed WHERE id = :id"""
)
_LIST_LINKS = Statement(
    """SELECT l.id, l.provider_id, l.name, l.created, l.last_used, p.name AS provider_name
    FROM linked_identities l JOIN identity_providers p USING (provider_id)
    WHERE l.user_id = :user_id ORDER BY p.position, p.name, l.created"""
)
# Changes of one user's links wait for each other, so that two of them cannot remove the last way to sign in together.
# What depends on the links is read by a later statement, which sees what the other change has committed.
_LOCK_USER = Statement(
    """SELECT * FROM users WHERE user_id = :user_id AND valid_from = :valid_from AND NOT disabled
    FOR NO KEY UPDATE"""
)
_COUNT_LINKS = Statement("SELECT count(*) FROM linked_identities WHERE user_id = :user_id")
_INSERT_LINK = Statement(
    """INSERT INTO linked_identities (id, provider_id, subject, user_id, name, tokens_sealed, last_used)
    VALUES (:id, :provider_id, :subject, :user_id, :name, :tokens_sealed, now())"""
)
_DELETE_LINK = Statement(
    """DELETE FROM linked_identities l USING identity_providers p
    WHERE l.id = :id AND l.user_id = :user_id AND p.provider_id = l.provider_id RETURNING p.name"""
)


class LinkedIdentity(Struct, frozen=True):
    id: str
    provider_id: str
    provider_name: str
    name: str
    created: datetime
    last_used: datetime


class PendingIdentity(Struct, frozen=True):
    provider_id: str
    identity: UpstreamIdentity
    next_path: str
    sealed: str = ""  # the identity as stored: each sign-in at a provider stores another text

    @property
    def form_id(self) -> str:
        """Names in a form what its page has shown: another identity may wait in this browser when the form is sent."""
        identity = self.identity
        shown = (self.provider_id, identity.subject, identity.name, identity.email, self.next_path)
        return digest(orjson.dumps(shown).decode()).hex()


class PendingIdentities:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def put(self, browser_secret: str, pending: PendingIdentity) -> None:
        """Replaces an earlier identity of the same browser."""
        name = _name(browser_secret)
        await self._database.value(
            _PUT,
            id=name,
            provider_id=pending.provider_id,
            identity_sealed=self._keyring.encrypt(_purpose(name), orjson.dumps(asdict(pending.identity)).decode()),
            next=pending.next_path,
            life=float(PENDING_S),
        )

    async def get(self, browser_secret: str) -> PendingIdentity | None:
        """Returns the identity of this browser without using it, or None if there is none."""
        row = await self._database.row(_GET, id=_name(browser_secret)) if browser_secret else None
        return self._pending(row)

    async def use(self, browser_secret: str, pending: PendingIdentity, tx: Runner | None = None) -> bool:
        """Uses the identity up. Returns False if it was used, has expired, or was replaced by a later one."""
        runner = tx or self._database
        return await runner.value(_USE, id=_name(browser_secret), identity_sealed=pending.sealed) is not None

    def _pending(self, row: Row | None) -> PendingIdentity | None:
        if row is None:
            return None
        sealed = row["identity_sealed"]
        fields = orjson.loads(self._keyring.decrypt(_purpose(row["id"]), sealed))
        return PendingIdentity(row["provider_id"], UpstreamIdentity(**fields), row["next"], sealed)


def _name(browser_secret: str) -> str:
    return digest(f"pending identity:{browser_secret}").hex()


def _purpose(name: str) -> str:
    return column_purpose("pending_identities.identity_sealed", name)


async def find_link(runner: Runner, provider_id: str, subject: str) -> tuple[str, User] | None:
    """Returns the id of the link of an identity, and its user, or None if the identity is not linked."""
    row = await runner.row(_FIND_LINK, provider_id=provider_id, subject=subject)
    return None if row is None else (row["link_id"], User.from_row(row))


async def touch_link(runner: Runner, link_id: str, name: str, tokens_sealed: str | None) -> None:
    """Marks a link as used, and keeps what the provider sent."""
    await runner.value(_TOUCH_LINK, id=link_id, name=name, tokens_sealed=tokens_sealed)


async def list_links(runner: Runner, user_id: str) -> list[LinkedIdentity]:
    return [LinkedIdentity(**dict(row)) for row in await runner.rows(_LIST_LINKS, user_id=user_id)]


async def lock_user_of_links(tx: Runner, user: User) -> User | None:
    """Returns the user as stored now, or None if it was revoked since it was read."""
    row = await tx.row(_LOCK_USER, user_id=user.user_id, valid_from=user.valid_from)
    return None if row is None else User.from_row(row)


async def count_links(tx: Runner, user_id: str) -> int:
    count: int = await tx.value(_COUNT_LINKS, user_id=user_id)
    return count


async def insert_link(
    tx: Runner, link_id: str, provider_id: str, user_id: str, identity: UpstreamIdentity, tokens_sealed: str | None
) -> None:
    """Raises UniqueViolation if the identity is linked already."""
    await tx.value(
        _INSERT_LINK,
        id=link_id,
        provider_id=provider_id,
        subject=identity.subject,
        user_id=user_id,
        name=identity.name,
        tokens_sealed=tokens_sealed,
    )


async def delete_link(tx: Runner, user_id: str, link_id: str) -> str | None:
    """Returns the name of the provider, or None if the user has no such link."""
    name: str | None = await tx.value(_DELETE_LINK, id=link_id, user_id=user_id)
    return name
