"""POST /proxy/oauth/token/revoke: revocation as §4.2 defines it, and for oidc clients also as RFC 7009 does."""

from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.store import ClientStore
from sso.oauth.errors import InvalidClient, InvalidRequest
from sso.oauth.model import Client
from sso.oauth.tokens.issuer import TokenIssuer
from sso.oauth.tokens.store import TokenStore

STRICT_METHODS = frozenset({"body"})  # §4.2: at this endpoint a strict client sends its secret in the body


class Revocation:
    def __init__(self, clients: ClientStore, token_store: TokenStore, token_issuer: TokenIssuer) -> None:
        self._clients = clients
        self._token_store = token_store
        self._token_issuer = token_issuer

    async def revoke(self, credentials: ClientCredentials, refresh_token: str, token: str) -> None:
        """Revokes the grant of a refresh token with all its access tokens, or a single access token."""
        client = await self._authenticate(credentials)
        if refresh_token and token:
            raise InvalidRequest("refresh_token and token: expected one of them")
        if refresh_token:
            if not await self._revoke_grant(refresh_token, client, only_current=True):
                raise InvalidRequest("the refresh token is not valid or already revoked")
        elif token and client.rules.is_standard:
            # RFC 7009 section 2.2: an invalid token is no error. An old refresh token revokes the grant as well,
            # because a thief may have obtained the current one.
            if not await self._revoke_grant(token, client, only_current=False):
                await self._token_store.revoke_access_token(token, client.client_id)
        else:
            raise InvalidRequest("refresh_token is required")

    async def _authenticate(self, credentials: ClientCredentials) -> Client:
        client = await self._clients.get(credentials.client_id) if credentials.client_id else None
        if client is None or client.disabled or credentials.bearer:
            raise InvalidClient(credentials.scheme)
        if self._clients.authenticate(client, credentials, "", strict_methods=STRICT_METHODS) is None:
            raise InvalidClient(credentials.scheme)
        return client

    async def _revoke_grant(self, token: str, client: Client, *, only_current: bool) -> bool:
        """Returns False if the token is not a refresh token of this client, or its grant does not exist."""
        presented = self._token_issuer.read_refresh_token(token)
        if presented is None or presented.client_id != client.client_id:
            return False
        if only_current:
            return await self._token_store.revoke_refresh_token(
                presented.grant_id, presented.client_id, presented.token_id
            )
        return await self._token_store.revoke_grant(presented.grant_id, presented.client_id)
