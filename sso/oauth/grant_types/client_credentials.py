"""The grant type client_credentials (RFC 6749 section 4.4): a service gets a token of its application."""

from collections.abc import Sequence
from typing import Any

from sso.core.service_token import SERVICE_SCOPES
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.cache import ClientCache
from sso.oauth.errors import (
    InvalidClient,
    InvalidDpopProof,
    InvalidScope,
    MissingApplication,
    UnauthorizedClient,
    UnsupportedGrantType,
)
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.model import UNRESTRICTED, Client, TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.service_token_store import ServiceTokenStore


class ClientCredentialsGrant:
    def __init__(self, clients: ClientCache, tokens: ServiceTokenStore, proofs: DpopProofs) -> None:
        self._proofs = proofs
        self._clients = clients
        self._tokens = tokens

    async def respond(
        self,
        request: TokenRequest,
        credentials: ClientCredentials,
        restrictions: TokenRestrictions = UNRESTRICTED,
        proof: DpopProof | None = None,
    ) -> dict[str, Any]:
        """Returns the token response. There is no refresh token: the client authenticates again."""
        if credentials.bearer:  # a strict client, whose SHA1 bearer belongs to a redirect URI
            raise UnsupportedGrantType
        if not credentials.client_id:
            raise InvalidClient(credentials.scheme)
        scopes = _scopes(request.scope)
        # Fast path: the statement that issues the token confirms the cached client.
        client = self._clients.cached(credentials.client_id) if proof is None else None
        token = await self._issue(client, credentials, restrictions, scopes) if client else None
        if token is None:
            token = await self._issue_checked(credentials, restrictions, scopes, proof)
        token_type = "DPoP" if proof else "Bearer"
        answer = {"access_token": token, "token_type": token_type, "expires_in": self._tokens.lifetime_s}
        return answer | ({"scope": " ".join(scopes)} if scopes else {})

    async def _issue(
        self, client: Client, credentials: ClientCredentials, restrictions: TokenRestrictions, scopes: Sequence[str]
    ) -> str | None:
        matched_secret = self._clients.authenticate(client, credentials, "")
        if not matched_secret or "client_credentials" not in client.grant_types:
            return None
        return await self._tokens.issue(client, matched_secret, restrictions, scopes)

    async def _issue_checked(
        self,
        credentials: ClientCredentials,
        restrictions: TokenRestrictions,
        scopes: Sequence[str],
        proof: DpopProof | None,
    ) -> str:
        """Slow path: reads the client and reports what is wrong."""
        client = await self._clients.read(credentials.client_id)
        # A public client does not authenticate, so "" is refused as well.
        if client is None or not self._clients.authenticate(client, credentials, ""):
            raise InvalidClient(credentials.scheme)
        self._clients.put(client)
        if "client_credentials" not in client.grant_types:
            raise UnauthorizedClient("client_credentials")
        if proof:
            await self._proofs.use(proof, client.rules)
        elif client.dpop_bound_access_tokens:
            raise InvalidDpopProof
        token = await self._issue(client, credentials, restrictions, scopes)
        if token is None:
            raise MissingApplication
        return token


def _scopes(text: str) -> tuple[str, ...]:
    """Returns the scopes that were asked for, none for the rights of the application."""
    scopes = tuple(dict.fromkeys(text.split()))
    if not set(scopes) <= set(SERVICE_SCOPES):
        expected = " or ".join(SERVICE_SCOPES)
        raise InvalidScope(f"scope: expected {expected}, or none, for a token with the rights of the application")
    return scopes
