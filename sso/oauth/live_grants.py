"""Whether a grant still lives: what was exchanged from its tokens ends with it."""

from sso.db.batch import Batch
from sso.db.bridge import Database
from sso.db.statement import Statement

_ALIVE = Statement(
    """SELECT item.n FROM unnest(CAST(:ids AS text[])) WITH ORDINALITY AS item (id, n)
    JOIN oauth_grants g ON g.id = item.id JOIN oauth_clients c ON c.client_id = g.client_id AND NOT c.disabled
    JOIN users u ON u.user_id = g.user_id AND g.issued >= u.valid_from"""
)


class LiveGrants:
    def __init__(self, database: Database) -> None:
        self._alive = Batch(database, _ALIVE)

    async def is_alive(self, grant_id: str) -> bool:
        return await self._alive(grant_id) is not None
