"""Clients as they were last read from the database, so that a token request needs a single statement.

A cached client may have changed since it was read. The statements of the token store therefore compare the points that
the caller relied on (the secret that matched, the profile, the redirect URIs) with the client's row, and issue nothing
if they differ. They return the client as it is now, and the request is checked once more with that.
"""

from sso.core.encryption import EncryptionError
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.redirect_uris import is_redirect_uri
from sso.oauth.clients.store import ClientStore
from sso.oauth.model import Client


class ClientCache:
    def __init__(self, store: ClientStore, *, allow_http: bool) -> None:
        self._store = store
        self._allow_http = allow_http
        self._clients: dict[str, Client] = {}

    def cached(self, client_id: str) -> Client | None:
        """Returns the client as it was last read, or None if it was not read yet.

        A client whose secret was sealed with a master key that was removed is forgotten: its row has another value now.
        """
        client = self._clients.get(client_id)
        try:
            if client is not None:
                self._store.secrets(client)
        except EncryptionError:
            self._clients.pop(client_id)
            return None
        return client

    async def read(self, client_id: str) -> Client | None:
        """Reads the client from the database. Returns None if the client does not exist."""
        return await self._store.get(client_id)

    def put(self, client: Client) -> None:
        """Remembers a client that was just read."""
        self._clients[client.client_id] = client

    def authenticate(self, client: Client, credentials: ClientCredentials, redirect_uri: str) -> str | None:
        """Returns the encrypted secret that matched ("" for a public client), or None if authentication fails."""
        return self._store.authenticate(client, credentials, redirect_uri)

    def has_redirect_uri(self, client: Client, redirect_uri: str) -> bool:
        return is_redirect_uri(redirect_uri, client.redirect_hosts, client.redirect_uris, allow_http=self._allow_http)
