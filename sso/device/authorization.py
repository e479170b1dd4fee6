"""POST /proxy/oauth/device_authorization: starts the sign-in of a device (RFC 8628 section 3.1)."""

from typing import Any

from sso.core.net import Address
from sso.device.session_store import INTERVAL_S, DeviceSessionStore, format_user_code
from sso.gsid.rate_limit import GameRateLimiter
from sso.oauth.authorization.request import parse_scopes
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.cache import ClientCache
from sso.oauth.errors import AuthorizationError, InvalidClient, InvalidScope, UnauthorizedClient
from sso.oauth.model import DEVICE_CODE, Client

PAGE = "/device"


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


class DeviceAuthorization:
    def __init__(
        self, clients: DeviceClients, sessions: DeviceSessionStore, rate_limiter: GameRateLimiter, base_url: str
    ) -> None:
        self._clients = clients
        self._sessions = sessions
        self._rate_limiter = rate_limiter
        self._page_url = f"{base_url}{PAGE}"

    async def begin(self, credentials: ClientCredentials, scope: str, address: Address) -> dict[str, Any]:
        """Returns the codes and the match words for the device.

        The session counts against the limit for new game sessions of this address.
        """
        client = await self._clients.authenticate(credentials)
        try:
            scopes = parse_scopes(scope)
        except AuthorizationError as error:
            raise InvalidScope(error.description) from None
        await self._rate_limiter.count_new_session(address)
        session = await self._sessions.create(client.client_id, scopes, address)
        if session is None:
            raise InvalidClient(credentials.scheme)  # the client was deleted during the request
        user_code = format_user_code(session.user_code)
        return {
            "device_code": session.device_code,
            "user_code": user_code,
            "verification_uri": self._page_url,
            "verification_uri_complete": f"{self._page_url}?user_code={user_code}",
            "expires_in": self._sessions.lifetime_s,
            "interval": INTERVAL_S,
            "match": session.match,
        }
