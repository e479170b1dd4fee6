"""Single-use links that are sent by mail: the link has a secret, the database its digest.

A new link does not replace earlier ones of the same purpose. A stranger who requests links can therefore not make the
owner's link invalid.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

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


@dataclass(frozen=True)
class MailedLink:
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
