"""The sites with access to somebody's account."""

from sso.accounts.ports import ConnectedSite
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction

# A grant that has ended, and one from before a password change, is no access any more; an agreement still is one.
_LIST = Statement(
    """SELECT c.client_id, coalesce(nullif(c.name, ''), c.client_id) AS name,
        ARRAY(SELECT DISTINCT unnest(a.scopes) FROM (
            SELECT scopes FROM oauth_grants g WHERE g.user_id = u.user_id AND g.client_id = c.client_id
                AND g.expires > now() AND g.issued >= u.valid_from
            UNION ALL SELECT scopes FROM oauth_consents k WHERE k.user_id = u.user_id AND k.client_id = c.client_id
        ) a) AS scopes,
        least(found.since, agreed.created) AS since, found.last_used
    FROM users u CROSS JOIN oauth_clients c
    LEFT JOIN oauth_consents agreed ON agreed.user_id = u.user_id AND agreed.client_id = c.client_id
    LEFT JOIN LATERAL (
        SELECT min(g.created) AS since, max(g.last_used) AS last_used FROM oauth_grants g
        WHERE g.user_id = u.user_id AND g.client_id = c.client_id AND g.expires > now() AND g.issued >= u.valid_from
    ) found ON true
    WHERE u.user_id = :user_id AND NOT c.disabled AND (found.since IS NOT NULL OR agreed.created IS NOT NULL)
    ORDER BY name, c.client_id"""
)
_REMOVE = tuple(
    Statement(f"DELETE FROM {table} WHERE user_id = :user_id AND client_id = :client_id")  # noqa: S608 - names are ours
    for table in ("oauth_codes", "oauth_grants", "oauth_consents")
)


class ConnectedSites:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, user_id: str) -> list[ConnectedSite]:
        rows = await self._database.rows(_LIST, user_id=user_id)
        return [ConnectedSite(**{**row, "scopes": tuple(row["scopes"])}) for row in rows]

    async def remove(self, user_id: str, client_id: str) -> None:
        """Codes, grants with all their tokens, and the agreement: from now on the site must ask again."""

        async def work(tx: Transaction) -> None:
            for statement in _REMOVE:
                await tx.value(statement, user_id=user_id, client_id=client_id)

        await self._database.transaction(work)
