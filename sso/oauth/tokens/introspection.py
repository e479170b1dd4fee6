"""POST /proxy/oauth/introspect (RFC 7662): a resource server asks whether an access token is valid."""

from typing import Any

from sso.db.transaction import Row
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.store import ClientStore
from sso.oauth.errors import InvalidClient, InvalidRequest, NoResourceServer
from sso.oauth.model import Client
from sso.oauth.tokens.claims import act_claim, sign_in_claims
from sso.oauth.tokens.resources import has_identifier
from sso.oauth.tokens.store import TokenStore

INACTIVE = {"active": False}


class Introspection:
    def __init__(
        self,
        clients: ClientStore,
        tokens: TokenStore,
        issuer: str,
        *,
        allow_http: bool,
    ) -> None:
        self._allow_http = allow_http
        self._clients = clients
        self._tokens = tokens
        self._issuer = issuer

    async def introspect(self, credentials: ClientCredentials, token: str) -> dict[str, Any]:
        """Returns the claims of a token, or that it is not active: invalid, revoked, or not for this client."""
        client = await self._clients.get(credentials.client_id) if credentials.client_id else None
        # A public client, for which the result is "", does not authenticate.
        if client is None or credentials.bearer or not self._clients.authenticate(client, credentials, ""):
            raise InvalidClient(credentials.scheme)
        if not client.resource_server:
            raise NoResourceServer
        if not token:
            raise InvalidRequest("token is required")
        row = await self._tokens.introspect(token, client.application_id)
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
        if row["auth"] is not None:  # of a user, not of a service
            claims |= sign_in_claims(row["auth"], row["auth_time"]) | act_claim(row["act"])
        if row["dpop_jkt"]:
            claims["cnf"] = {"jkt": row["dpop_jkt"]}
        return claims

    def _is_meant_for(self, server: Client, row: Row) -> bool:
        """A token that names resources is meant for these alone, also among the servers of one application."""
        resources = row["resources"]
        if not resources:
            return bool(row["is_of_application"])
        return any(has_identifier(server, resource, allow_http=self._allow_http) for resource in resources)
