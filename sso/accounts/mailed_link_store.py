"""Single-use links that are sent by mail: the link has a secret, the database its digest.

A new link does not replace earlier ones of the same purpose. A stranger who requests links can therefore not make the
owner's link invalid.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from sso.accounts.model import login_key
from sso.core.ids import digest, secret_token
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

_INSERT = Statement(
    """INSERT INTO mailed_links (digest, purpose, user_id, data, expires)
    VALUES (:digest, :purpose, :user_id, :data, now() + make_interval(secs => :life))"""
)
_FIND = Statement(
    """SELECT user_id, data, created, expires FROM mailed_links
    WHERE digest = :digest AND purpose = :purpose AND expires > now()"""
)
_USE = Statement(
    """DELETE FROM mailed_links WHERE digest = :digest AND purpose = :purpose AND expires > now()
    RETURNING user_id, data, created, expires"""
)
# Rows are locked in key order to avoid deadlocks.
_REVOKE = Statement(
    """DELETE FROM mailed_links WHERE digest IN (
        SELECT digest FROM mailed_links WHERE user_id = :user_id AND purpose = :purpose ORDER BY digest FOR UPDATE
    )"""
)
_NEWEST = Statement(
    """SELECT data FROM mailed_links WHERE user_id = :user_id AND purpose = :purpose AND expires > now()
    ORDER BY created DESC LIMIT 1"""
)
_COUNT = Statement(
    """SELECT count(*) FROM mailed_links WHERE user_id = CAST(:user_id AS text) AND purpose = :purpose
    AND created > now() - make_interval(secs => :window)"""
)
_LIST_INVITATIONS = Statement(
    """SELECT data, created, expires FROM mailed_links WHERE purpose = 'invitation' AND expires > now()
        AND (created, data ->> 'id') > (to_timestamp(0) + :after_us * interval '1 microsecond', :after_id)
    ORDER BY created, data ->> 'id' LIMIT CAST(:limit AS bigint)"""
)
_REVOKE_INVITATIONS = Statement(
    """DELETE FROM mailed_links WHERE purpose = 'invitation' AND expires > now()
        AND data ->> 'id' = ANY (CAST(:ids AS text[])) RETURNING digest"""
)
# Invitations and registrations have no user, and the address in their data.
_DELETE_TO_ADDRESS = Statement(
    """DELETE FROM mailed_links WHERE digest IN (
        SELECT digest FROM mailed_links
        WHERE user_id IS NULL AND (data ->> 'login' = :login OR data ->> 'login_key' = :login_key)
        ORDER BY digest FOR UPDATE
    )"""
)
_UNDO_LINKS = Statement(
    """SELECT data, expires FROM mailed_links WHERE user_id = :user_id AND purpose = 'email_undo' AND expires > now()
    ORDER BY created"""
)
_FIRST_UNDO_LINK = Statement(
    """SELECT min(created) FROM mailed_links
    WHERE user_id = :user_id AND purpose = 'email_undo' AND expires > now()"""
)
_REQUEST_UNDO = Statement(
    """UPDATE mailed_links SET data = data || jsonb_build_object('undo_at', floor(extract(epoch FROM now())) + :wait),
        expires = greatest(expires, now() + make_interval(secs => :wait + :use))
    WHERE digest = :digest AND purpose = 'email_undo' AND expires > now() AND NOT data ? 'undo_at'
    RETURNING data"""
)
_UNDO_LINK = Statement(
    """SELECT data, floor(extract(epoch FROM now())) AS now FROM mailed_links
    WHERE digest = :digest AND purpose = 'email_undo' AND expires > now()"""
)
# An earlier link stays: it may be the owner's, while the later addresses are a thief's.
_REVOKE_LATER_UNDO_LINKS = Statement(
    """DELETE FROM mailed_links WHERE digest IN (
        SELECT digest FROM mailed_links WHERE user_id = :user_id AND purpose = 'email_undo' AND created >= :created
        ORDER BY digest FOR UPDATE
    )"""
)


class MailedLink(Struct, frozen=True):
    user_id: str | None
    data: dict[str, Any]
    created: datetime
    expires: datetime


class MailedLinks:
    def __init__(self, database: Database, base_url: str) -> None:
        self._database = database
        self._base_url = base_url

    async def create(
        self, tx: Runner, purpose: str, path: str, life_s: int, user_id: str | None = None, **data: Any
    ) -> str:
        """Returns the URL of a new link. Its host comes from the base URL, never from the request."""
        secret = secret_token()
        await tx.value(
            _INSERT,
            digest=digest(secret),
            purpose=purpose,
            user_id=user_id,
            data=data,
            life=float(life_s),
        )
        return f"{self._base_url}{path}?token={quote(secret)}"

    async def find(self, purpose: str, secret: str) -> MailedLink | None:
        """Returns the link of this secret without using it, or None if it was used, has expired or does not exist."""
        return _link(await self._database.row(_FIND, digest=digest(secret), purpose=purpose))

    async def use(self, tx: Runner, purpose: str, secret: str) -> MailedLink | None:
        """Uses the link up in the transaction of its effect. Of several concurrent uses, one gets the link."""
        return _link(await tx.row(_USE, digest=digest(secret), purpose=purpose))

    async def revoke(self, tx: Runner, purpose: str, user_id: str) -> None:
        """Makes all links of this purpose that were sent to the user invalid."""
        await tx.value(_REVOKE, user_id=user_id, purpose=purpose)


def _link(row: Row | None) -> MailedLink | None:
    return MailedLink(row["user_id"], row["data"], row["created"], row["expires"]) if row else None


async def newest_link_data(runner: Runner, purpose: str, user_id: str) -> dict[str, Any] | None:
    data: dict[str, Any] | None = await runner.value(_NEWEST, user_id=user_id, purpose=purpose)
    return data


async def count_links(runner: Runner, purpose: str, user_id: str | None, window_s: int) -> int:
    """Returns the number of unused links that were created within the last ``window_s`` seconds."""
    count: int = await runner.value(_COUNT, user_id=user_id, purpose=purpose, window=float(window_s))
    return count


async def list_invitations(runner: Runner, after_us: int, after_id: str, limit: int | None) -> list[Row]:
    return await runner.rows(_LIST_INVITATIONS, after_us=after_us, after_id=after_id, limit=limit)


async def revoke_invitations(runner: Runner, ids: Sequence[str]) -> int:
    """Returns how many could still be used."""
    return len(await runner.rows(_REVOKE_INVITATIONS, ids=ids))


async def delete_links_to_address(runner: Runner, login: str) -> None:
    """Deletes the links with which the owner of this address could create an account."""
    await runner.value(_DELETE_TO_ADDRESS, login=login, login_key=login_key(login))


async def list_undo_links(runner: Runner, user_id: str) -> list[Row]:
    """Returns the links that undo a change of the address, the oldest first."""
    return await runner.rows(_UNDO_LINKS, user_id=user_id)


async def first_undo_link(runner: Runner, user_id: str) -> datetime | None:
    """Returns when the oldest link was created that undoes a change of the address."""
    created: datetime | None = await runner.value(_FIRST_UNDO_LINK, user_id=user_id)
    return created


async def request_undo(tx: Runner, secret: str, wait_s: int, use_s: int) -> dict[str, Any] | None:
    """Returns the changed data of the link, or None if the undo is requested already or the link does not work."""
    data: dict[str, Any] | None = await tx.value(_REQUEST_UNDO, digest=digest(secret), wait=wait_s, use=use_s)
    return data


async def read_undo_link(tx: Runner, secret: str) -> Row | None:
    """Returns the data of the link and the current time."""
    return await tx.row(_UNDO_LINK, digest=digest(secret))


async def revoke_later_undo_links(tx: Runner, user_id: str, created: datetime) -> None:
    await tx.value(_REVOKE_LATER_UNDO_LINKS, user_id=user_id, created=created)
