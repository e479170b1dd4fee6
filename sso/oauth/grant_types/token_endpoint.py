"""POST /proxy/oauth/token (RFC 6749 section 3.2): dispatches on the grant type."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from sso.core.hidden_fields import RecordWithHiddenFields
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.errors import UnsupportedGrantType
from sso.oauth.grant_types.authorization_code import AuthorizationCodeGrant
from sso.oauth.grant_types.client_credentials import ClientCredentialsGrant
from sso.oauth.grant_types.refresh_token import RefreshTokenGrant
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.model import UNRESTRICTED, TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof
from sso.oauth.tokens.resources import ResourceServers


class HeldAnswer(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"tokens"})

    tokens: dict[str, Any]
    finish: Callable[[bool], Awaitable[None]]  # called with True after the answer was written, otherwise with False


class HeldGrant(Protocol):
    async def respond(
        self, request: TokenRequest, credentials: ClientCredentials, proof: DpopProof | None = None
    ) -> HeldAnswer: ...


class TokenEndpoint:
    def __init__(
        self,
        authorization_code: AuthorizationCodeGrant,
        refresh_token: RefreshTokenGrant,
        client_credentials: ClientCredentialsGrant,
        resource_servers: ResourceServers,
    ) -> None:
        self._authorization_code = authorization_code
        self._refresh_token = refresh_token
        self._client_credentials = client_credentials
        self._resource_servers = resource_servers

    async def respond_restricted(
        self,
        request: TokenRequest,
        credentials: ClientCredentials,
        idempotency_key: str | None,
        proof: DpopProof | None,
    ) -> dict[str, Any]:
        """Returns the response to a request with a DPoP proof, or with resource servers that the token is for."""
        resources = await self._resource_servers.require(request.resource) if request.resource else ()
        restrictions = TokenRestrictions(proof.jkt if proof else None, resources)
        return await self.respond(request, credentials, idempotency_key, restrictions, proof)

    def respond(
        self,
        request: TokenRequest,
        credentials: ClientCredentials,
        idempotency_key: str | None = None,
        restrictions: TokenRestrictions = UNRESTRICTED,
        proof: DpopProof | None = None,
    ) -> Awaitable[dict[str, Any]]:
        """Returns the awaitable token response.

        If a request does not name its client, the code or the refresh token does.
        """
        match request.grant_type:
            case "authorization_code":
                return self._authorization_code.respond(request, credentials, restrictions, proof)
            case "refresh_token":
                return self._refresh_token.respond(request, credentials, idempotency_key, restrictions, proof)
            case "client_credentials":
                return self._client_credentials.respond(request, credentials, restrictions, proof)
            case _:
                request.require("grant_type")
                raise UnsupportedGrantType
