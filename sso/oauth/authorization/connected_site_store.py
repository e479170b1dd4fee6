"""The sites with access to a user's account."""

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.ports import ConnectedSite
from sso.backchannel_logout.store import end_site_sessions
from sso.db.database import Database
from sso.db.known_users import REMEMBER_APPLICATIONS
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.oauth.model import SCOPES
from sso.oauth.tokens.claims import scopes_of_requested_claims
from sso.signals.recording_store import forget_client

# A password change ends grants, but not consents. The grant of an exchanged token stays when the token has ended.
_VALID_GRANT = """g.user_id = u.user_id AND g.client_id = c.client_id AND g.expires > now() AND g.issued >= u.valid_from
                AND (cardinality(g.act) = 0 OR EXISTS (SELECT FROM oauth_access_tokens a WHERE a.grant_id = g.id))"""
# A site has access by a valid grant or by a consent.
_LIST = Statement(
    f"""SELECT c.client_id, coalesce(nullif(c.name, ''), c.client_id) AS name,
        ARRAY(SELECT DISTINCT unnest(a.scopes) FROM (
            SELECT scopes FROM oauth_grants g WHERE {_VALID_GRANT}
            UNION ALL SELECT scopes FROM oauth_consents k WHERE k.user_id = u.user_id AND k.client_id = c.client_id
        ) a) AS scopes,
        grants.claims,
        least(grants.since, consent.created) AS since, grants.last_used,
        CASE WHEN starts_with(c.logo_uri, 'data:') AND length(c.logo_uri) < 20000 THEN c.logo_uri ELSE '' END AS logo
    FROM users u JOIN oauth_clients c ON c.client_id = ANY (ARRAY(
        SELECT client_id FROM oauth_grants WHERE user_id = :user_id
        UNION SELECT client_id FROM oauth_consents WHERE user_id = :user_id
    ))
    LEFT JOIN oauth_consents consent ON consent.user_id = u.user_id AND consent.client_id = c.client_id
    LEFT JOIN LATERAL (
        SELECT min(g.created) AS since, max(g.last_used) AS last_used,
            coalesce(array_agg(DISTINCT g.claims) FILTER (WHERE g.claims <> ''), '{{}}') AS claims FROM oauth_grants g
        WHERE {_VALID_GRANT}
    ) grants ON true
    WHERE u.user_id = :user_id AND NOT c.disabled AND (grants.since IS NOT NULL OR consent.created IS NOT NULL)
    ORDER BY name, c.client_id"""
)
_NAME = Statement(
    """SELECT coalesce(nullif(c.name, ''), c.client_id) FROM oauth_clients c WHERE c.client_id = :client_id
        AND (EXISTS (SELECT FROM oauth_grants g WHERE g.user_id = :user_id AND g.client_id = c.client_id)
            OR EXISTS (SELECT FROM oauth_consents k WHERE k.user_id = :user_id AND k.client_id = c.client_id))"""
)
_OF_SITE = "WHERE user_id = :user_id AND client_id = :client_id"
_REMOVE = (
    Statement(f"DELETE FROM oauth_codes {_OF_SITE}"),
    Statement(f"DELETE FROM game_sessions {_OF_SITE}"),
    *(
        Statement(
            f"""WITH deleted AS (DELETE FROM {table} {_OF_SITE} RETURNING user_id, client_id), {REMEMBER_APPLICATIONS}
            SELECT count(*) FROM deleted"""
        )
        for table in ("oauth_grants", "oauth_consents")
    ),
)


class ConnectedSites:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, user_id: str) -> list[ConnectedSite]:
        rows = await self._database.rows(_LIST, user_id=user_id)
        return [_site(row) for row in rows]

    async def remove(self, user_id: str, client_id: str) -> None:
        """Removes the site's codes, the sessions of its devices, its grants with all their tokens, and the consent.

        The site must ask again. It is notified that the user's sessions have ended, if it wants to be.
        """
        await self._database.transaction(_remove, user_id, client_id)


def _site(row: Row) -> ConnectedSite:
    """Returns the site with the scopes of what it may read, also by claims that it has requested one by one."""
    values = dict(row)
    scopes = scopes_of_requested_claims(*values.pop("claims")).union(values["scopes"])
    return ConnectedSite(**values | {"scopes": tuple(scope for scope in SCOPES if scope in scopes)})


async def _remove(tx: Transaction, user_id: str, client_id: str) -> None:
    name = await tx.value(_NAME, user_id=user_id, client_id=client_id)
    await end_site_sessions(tx, user_id, client_id=client_id)
    await forget_client(tx, user_id, client_id)
    for statement in _REMOVE:
        await tx.value(statement, user_id=user_id, client_id=client_id)
    if name is not None:
        await record_event(tx, user_id, EventKind.SITE_REMOVED, name=name)
