"""The access tokens of service clients (client_credentials) in the database. Each method is one transaction."""

from collections.abc import Sequence

from sso.core.ids import digest
from sso.core.service_token import ServiceIdentity, claimed_application, new_service_token
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.service_clients import HAS_ACTIVE_APPLICATION
from sso.oauth.model import UNRESTRICTED, Client, TokenRestrictions
from sso.oauth.tokens.statements import AUTHENTICATED

# A token for each item whose client is still as it was when it was authenticated, and whose application exists.
_ISSUE = BatchStatement(
    f"""WITH item AS (
        SELECT * FROM {{items}}
    ), valid_items AS (
        SELECT item.* FROM item
        JOIN oauth_clients c ON {by_index("c.client_id", "item.client_id")} AND c.application_id = item.application_id
        JOIN applications a ON a.application_id = item.application_id LEFT JOIN projects p ON p.id = a.project_id
        WHERE {AUTHENTICATED} AND 'client_credentials' = ANY (c.grant_types) AND NOT a.removed
            AND p.removed IS NOT TRUE AND (item.dpop_jkt IS NOT NULL OR NOT c.dpop_bound_access_tokens)
        -- The client may be about to lose its tokens. Rows are locked in key order to avoid deadlocks.
        ORDER BY item.client_id FOR KEY SHARE OF c {{if_locked}}
    ), new_tokens AS (
        INSERT INTO oauth_service_tokens (digest, client_id, application_id, expires, dpop_jkt, resources, scopes)
        SELECT digest, client_id, application_id, now() + make_interval(secs => lifetime_s), dpop_jkt,
            string_to_array(resources, ' '), string_to_array(scopes, ' ')
        FROM valid_items
    )
    SELECT n FROM valid_items""",
    columns={
        "digest": "bytea",
        "client_id": "text",
        "application_id": "int",
        "matched_secret": "text",
        "profile": "text",
        "auth_method": "text",
        "lifetime_s": "float",
        "dpop_jkt": "text",
        "resources": "text",
        "scopes": "text",
    },
)
# A token ends when its client is disabled, belongs to another application, or may no longer use client_credentials. One
# that is bound to a key or meant for other resource servers is not accepted here. One with scopes has only these.
_VALID = """FROM {items} JOIN oauth_service_tokens t USING (digest)
    JOIN oauth_clients c USING (client_id, application_id)
    WHERE t.expires > now() AND NOT c.disabled AND 'client_credentials' = ANY (c.grant_types)
        AND t.dpop_jkt IS NULL AND cardinality(t.resources) = 0"""
_FIND = BatchStatement(
    f"SELECT item.n, t.application_id, t.client_id {_VALID} AND cardinality(t.scopes) = 0", columns={"digest": "bytea"}
)
_FIND_SCOPED = BatchStatement(
    f"SELECT item.n, t.client_id, t.scopes {_VALID} AND {HAS_ACTIVE_APPLICATION.format('t')}",
    columns={"digest": "bytea"},
)


class ServiceTokenStore:
    def __init__(self, database: Database, lifetime_s: int) -> None:
        self.lifetime_s = lifetime_s
        self._issue = SkipLockedBatch(database, _ISSUE)
        self._find = Batch(database, _FIND)
        self._find_scoped = Batch(database, _FIND_SCOPED)

    async def issue(
        self,
        client: Client,
        matched_secret: str,
        restrictions: TokenRestrictions = UNRESTRICTED,
        scopes: Sequence[str] = (),
    ) -> str | None:
        """Returns a new token, with the rights of the application or, with scopes, with these instead.

        Returns None if the client has changed, or if its application does not exist.
        """
        token = new_service_token(client.application_id)
        row = await self._issue(
            digest=digest(token),
            client_id=client.client_id,
            application_id=client.application_id,
            matched_secret=matched_secret,
            profile=client.profile,
            auth_method=client.token_endpoint_auth_method,
            lifetime_s=float(self.lifetime_s),
            dpop_jkt=restrictions.dpop_jkt,
            resources=" ".join(restrictions.resources),
            scopes=" ".join(scopes),
        )
        return token if row else None

    async def identity_of(self, token: str) -> ServiceIdentity | None:
        """Returns the identity of a valid token. Reads the database each time, so that a revocation acts at once."""
        if not claimed_application(token):
            return None
        row = await self._find(digest=digest(token))
        return ServiceIdentity(row["application_id"], row["client_id"]) if row else None

    async def scopes_of(self, token: str) -> tuple[str, tuple[str, ...]] | None:
        """Returns the client of a valid token and its scopes, which may be none."""
        row = await self._find_scoped(digest=digest(token)) if claimed_application(token) else None
        return (row["client_id"], tuple(row["scopes"])) if row else None
