"""Authenticates the clients of devices, as the token endpoint does."""

from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.cache import ClientCache
from sso.oauth.errors import InvalidClient, UnauthorizedClient
from sso.oauth.model import DEVICE_CODE, Client


class DeviceClients:
    def __init__(self, clients: ClientCache) -> None:
        self._clients = clients

    async def authenticate(self, credentials: ClientCredentials) -> Client:
        """Raises InvalidClient, or UnauthorizedClient if the client may not use the grant type."""
        client = await self._clients.read(credentials.client_id)
        # The SHA1 bearer of a strict client belongs to a redirect URI, which a device does not have.
        if client is None or credentials.bearer or self._clients.authenticate(client, credentials, "") is None:
            raise InvalidClient(credentials.scheme)
        if DEVICE_CODE not in client.grant_types:
            raise UnauthorizedClient(DEVICE_CODE)
        return client
