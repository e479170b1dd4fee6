"""Whether an access token is still valid: what was exchanged from it ends with it."""

from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement

_ALIVE = Statement(
    """SELECT item.n, c.first_party FROM unnest(CAST(:digests AS bytea[])) WITH ORDINALITY AS item (digest, n)
    JOIN oauth_access_tokens a ON a.digest = item.digest AND a.expires > now() JOIN oauth_grants g ON g.id = a.grant_id
    JOIN oauth_clients c ON c.client_id = g.client_id AND NOT c.disabled
    JOIN users u ON u.user_id = g.user_id AND g.issued >= u.valid_from"""
)


class LiveGrants:
    def __init__(self, database: Database) -> None:
        self._alive = Batch(database, _ALIVE)

    async def is_alive(self, digest: bytes, *, first_party: bool) -> bool:
        """With ``first_party``, only if its client is one of the studio's own now."""
        row = await self._alive(digest)
        return row is not None and (row["first_party"] or not first_party)
