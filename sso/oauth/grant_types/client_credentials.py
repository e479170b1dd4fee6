"""The grant type client_credentials (RFC 6749 section 4.4): a service gets a token of its application."""

from typing import Any

from sso.oauth.client_auth import ClientCredentials
from sso.oauth.client_cache import ClientCache
from sso.oauth.errors import InvalidClient, InvalidScope, MissingApplication, UnauthorizedClient, UnsupportedGrantType
from sso.oauth.model import Client
from sso.oauth.service_token_store import ServiceTokenStore
from sso.oauth.token_request import TokenRequest


class ClientCredentialsGrant:
    def __init__(self, clients: ClientCache, tokens: ServiceTokenStore) -> None:
        self._clients = clients
        self._tokens = tokens

    async def respond(self, request: TokenRequest, credentials: ClientCredentials) -> dict[str, Any]:
        """Returns the token response. There is no refresh token: the client authenticates again."""
        if credentials.bearer:  # a strict client, whose SHA1 bearer belongs to a redirect URI
            raise UnsupportedGrantType
        if not credentials.client_id:
            raise InvalidClient(credentials.scheme)
        if request.scope:
            raise InvalidScope("scope: expected none, because the token has the rights of the application")
        # Fast path: the statement that issues the token confirms the cached client.
        client = self._clients.cached(credentials.client_id)
        token = await self._issue(client, credentials) if client else None
        if token is None:
            token = await self._issue_checked(credentials)
        return {"access_token": token, "token_type": "Bearer", "expires_in": self._tokens.lifetime_s}

    async def _issue(self, client: Client, credentials: ClientCredentials) -> str | None:
        matched_secret = self._clients.authenticate(client, credentials, "")
        if not matched_secret or "client_credentials" not in client.grant_types:
            return None
        return await self._tokens.issue(client, matched_secret)

    async def _issue_checked(self, credentials: ClientCredentials) -> str:
        """Slow path: reads the client and reports what is wrong."""
        client = await self._clients.read(credentials.client_id)
        # A public client does not authenticate, so "" is refused as well.
        if client is None or not self._clients.authenticate(client, credentials, ""):
            raise InvalidClient(credentials.scheme)
        self._clients.put(client)
        if "client_credentials" not in client.grant_types:
            raise UnauthorizedClient("client_credentials")
        token = await self._issue(client, credentials)
        if token is None:
            raise MissingApplication
        return token
