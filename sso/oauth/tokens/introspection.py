"""POST /proxy/oauth/introspect (RFC 7662): a resource server asks whether an access token is valid."""

from typing import Any

from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.transaction import Row
from sso.oauth.clients.authentication import ClientCredentials, authenticate_client
from sso.oauth.clients.store import ClientStore
from sso.oauth.errors import InvalidClient, InvalidRequest, NoResourceServer
from sso.oauth.model import Client
from sso.oauth.tokens.jwt_access_tokens import AccessTokenDigests
from sso.oauth.tokens.resources import has_identifier

INACTIVE = {"active": False}

# A valid access token of a user or of a service, if its client belongs to the application of the resource server, or if
# it names resources.
_FIND = BatchStatement(
    """SELECT item.n, c.client_id, c.application_id, found.sub, found.scopes, found.dpop_jkt, found.resources,
        c.application_id = item.application_id AS is_of_application,
        CAST(floor(extract(epoch FROM found.expires)) AS bigint) AS exp
    FROM {items} CROSS JOIN LATERAL (
        SELECT g.client_id, g.user_id AS sub, g.scopes, a.expires, a.dpop_jkt, a.resources
        FROM oauth_access_tokens a JOIN oauth_grants g ON g.id = a.grant_id JOIN users u ON u.user_id = g.user_id
        WHERE a.digest = item.digest AND NOT u.disabled AND g.issued >= u.valid_from
        UNION ALL
        SELECT t.client_id, t.client_id, CAST(ARRAY[] AS text[]), t.expires, t.dpop_jkt, t.resources
        FROM oauth_service_tokens t JOIN oauth_clients s USING (client_id, application_id)
        WHERE t.digest = item.digest AND 'client_credentials' = ANY (s.grant_types)
    ) found JOIN oauth_clients c ON c.client_id = found.client_id
    WHERE found.expires > now() AND NOT c.disabled AND item.application_id > 0
        AND (c.application_id = item.application_id OR cardinality(found.resources) > 0)""",
    columns={"digest": "bytea", "application_id": "int"},
)


class Introspection:
    def __init__(
        self,
        clients: ClientStore,
        database: Database,
        digests: AccessTokenDigests,
        issuer: str,
        *,
        allow_http: bool,
    ) -> None:
        self._allow_http = allow_http
        self._digests = digests
        self._clients = clients
        self._find = Batch(database, _FIND)
        self._issuer = issuer

    async def introspect(self, credentials: ClientCredentials, token: str) -> dict[str, Any]:
        """Returns the claims of a token, or that it is not active: invalid, revoked, or not for this client."""
        client = await self._clients.get(credentials.client_id) if credentials.client_id else None
        # A public client, for which the result is "", does not authenticate.
        if (
            client is None
            or credentials.bearer
            or not authenticate_client(client, self._clients.secrets(client), credentials, "")
        ):
            raise InvalidClient(credentials.scheme)
        if not client.resource_server:
            raise NoResourceServer
        if not token:
            raise InvalidRequest("token is required")
        row = await self._find(digest=self._digests.of(token), application_id=client.application_id)
        if row is None or not self._is_meant_for(client, row):
            return INACTIVE
        claims = {
            "active": True,
            "iss": self._issuer,
            "client_id": row["client_id"],
            "sub": row["sub"],
            "application_id": row["application_id"],
            "exp": row["exp"],
            "token_type": "DPoP" if row["dpop_jkt"] else "Bearer",
        }
        if row["scopes"]:
            claims["scope"] = " ".join(row["scopes"])
        if row["resources"]:
            claims["aud"] = [self._issuer, *row["resources"]]
        if row["dpop_jkt"]:
            claims["cnf"] = {"jkt": row["dpop_jkt"]}
        return claims

    def _is_meant_for(self, server: Client, row: Row) -> bool:
        """A token that names resources is meant for these alone, also among the servers of one application."""
        resources = row["resources"]
        if not resources:
            return bool(row["is_of_application"])
        return any(has_identifier(server, resource, allow_http=self._allow_http) for resource in resources)
