"""Clients as they were last read from the database, so that a token request needs a single statement.

A cached client may have changed since it was read. The statements of the token store therefore compare the points that
the caller relied on (the secret that matched, the profile, the redirect URIs) with the client's row, and issue nothing
if they differ. So a request has two paths:

- Fast path: check the request with the cached client; the statement that issues the tokens confirms the client.
- Slow path: if there is no cached client, a check fails, or the statement issues nothing, read the client, put it into
  the cache, and check again. Only the slow path refuses a request.
"""

from sso.oauth.clients.authentication import ClientCredentials, authenticate_client
from sso.oauth.clients.redirect_uris import is_redirect_uri
from sso.oauth.clients.store import ClientStore
from sso.oauth.model import Client


class ClientCache:
    def __init__(self, store: ClientStore, *, allow_http: bool) -> None:
        self._store = store
        self._allow_http = allow_http
        self._clients: dict[str, Client] = {}

    def authenticate_cached(self, credentials: ClientCredentials, redirect_uri: str) -> tuple[Client, str] | None:
        """Fast path: returns the cached client that the credentials name, and the encrypted secret that matched.

        Returns None if the slow path must decide.
        """
        client = self._clients.get(credentials.client_id)
        if client is None or not self.has_redirect_uri(client, redirect_uri):
            return None
        matched_secret = self.authenticate(client, credentials, redirect_uri)
        return None if matched_secret is None else (client, matched_secret)

    def cached(self, client_id: str) -> Client | None:
        """Fast path: returns the client as it was last read, or None if it was not read yet."""
        return self._clients.get(client_id)

    async def read(self, client_id: str) -> Client | None:
        """Slow path: reads the client from the database. Returns None if the client does not exist."""
        return await self._store.get(client_id)

    def put(self, client: Client) -> None:
        """Remembers a client that was just read."""
        self._clients[client.client_id] = client

    def authenticate(self, client: Client, credentials: ClientCredentials, redirect_uri: str) -> str | None:
        """Returns the encrypted secret that matched ("" for a public client), or None if authentication fails."""
        return authenticate_client(client, self._store.secrets(client), credentials, redirect_uri)

    def has_redirect_uri(self, client: Client, redirect_uri: str) -> bool:
        return is_redirect_uri(redirect_uri, client.redirect_hosts, client.redirect_uris, allow_http=self._allow_http)
