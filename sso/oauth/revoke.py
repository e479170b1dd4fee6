"""POST /proxy/oauth/token/revoke: as §4.2 has it, and for standard clients as RFC 7009 has it."""

from sso.oauth.client_auth import ClientCredentials, proof
from sso.oauth.client_store import ClientStore
from sso.oauth.errors import InvalidClient, InvalidRequest
from sso.oauth.model import Client
from sso.oauth.token_store import TokenStore
from sso.oauth.tokens import TokenIssuer

WAYS = frozenset({"body"})  # §4.2 has every client send its secret in the body, here


class Revocation:
    def __init__(self, clients: ClientStore, grants: TokenStore, tokens: TokenIssuer) -> None:
        self._clients = clients
        self._grants = grants
        self._tokens = tokens

    async def revoke(self, given: ClientCredentials, refresh_token: str, token: str) -> None:
        """From now on the refresh token and the access tokens of its grant are refused everywhere."""
        client = await self._client(given)
        if refresh_token and token:
            raise InvalidRequest("refresh_token and token: expected one of them")
        if refresh_token:
            if not await self._end(refresh_token, client, newest=True):
                raise InvalidRequest("the refresh token is not valid or already revoked")
        elif token and client.profile == "oidc":
            # RFC 7009 section 2.2: a token that is not valid is as good as revoked. An older one of the grant ends it
            # all the same: a thief may have made the newest.
            if not await self._end(token, client, newest=False):
                await self._grants.revoke_access(token, client.client_id)
        else:
            raise InvalidRequest("refresh_token is required")

    async def _client(self, given: ClientCredentials) -> Client:
        client = await self._clients.get(given.client_id) if given.client_id else None
        if client is None or client.disabled or given.bearer:
            raise InvalidClient(given.scheme)
        if proof(client, self._clients.secrets(client), given, "", strict_ways=WAYS) is None:
            raise InvalidClient(given.scheme)
        return client

    async def _end(self, token: str, client: Client, *, newest: bool) -> bool:
        presented = self._tokens.read_refresh(token)
        if presented is None or presented.client_id != client.client_id:
            return False
        if newest:
            return await self._grants.revoke(presented.grant_id, presented.client_id, presented.head)
        return await self._grants.revoke_grant(presented.grant_id, presented.client_id)
