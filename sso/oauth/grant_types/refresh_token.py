"""The grant type refresh_token (RFC 6749 section 6), with rotation of the refresh token (RFC 9700 section 4.14.2)."""

from typing import Any

import structlog

from sso.accounts.authentication_context import has_second_factor
from sso.core.encryption import Keyring
from sso.core.errors import ApiError
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.cache import ClientCache
from sso.oauth.clients.profiles import RULES, Profile
from sso.oauth.errors import (
    BannedUser,
    InvalidClient,
    InvalidDpopProof,
    InvalidGrant,
    InvalidRequest,
    InvalidScope,
    InvalidTarget,
    UnauthorizedClient,
)
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.model import SCOPES, UNRESTRICTED, Client, TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.issuer import PresentedRefreshToken, TokenIssuer
from sso.oauth.tokens.store import RotationResult, TokenStore
from sso.oauth.tokens.successor_tokens import SuccessorTokens, successor_tokens

log = structlog.get_logger()


class RefreshTokenGrant:
    def __init__(
        self,
        clients: ClientCache,
        token_store: TokenStore,
        token_issuer: TokenIssuer,
        proofs: DpopProofs,
        keyring: Keyring,
        *,
        second_factor_of_all: bool,
    ) -> None:
        self._second_factor_of_all = second_factor_of_all
        self._clients = clients
        self._proofs = proofs
        self._token_store = token_store
        self._token_issuer = token_issuer
        self._keyring = keyring

    async def respond(
        self,
        request: TokenRequest,
        credentials: ClientCredentials,
        idempotency_key: str | None = None,
        restrictions: TokenRestrictions = UNRESTRICTED,
        proof: DpopProof | None = None,
    ) -> dict[str, Any]:
        """Rotates the refresh token, unless the profile says otherwise, and returns the token response.

        A repeated request with the same idempotency key gets the same tokens, while the new refresh token is unused.
        """
        request.require("refresh_token")
        presented = self._token_issuer.read_refresh_token(request.refresh_token)
        if presented is None or credentials.client_id not in ("", presented.client_id):
            raise _invalid_refresh_token(await self._profile(request, credentials))
        client = self._clients.cached(presented.client_id) or await self._clients.read(presented.client_id)
        if client is None:
            raise _invalid_refresh_token("strict")
        if request.scope and client.rules.is_standard:  # in §4.2 there is no scope, so it is ignored
            restrictions = restrictions._replace(scopes=_requested_scopes(request.scope))
        successors, *others = successor_tokens(
            self._keyring, presented, idempotency_key, restrictions, rotates=client.rules.rotates_refresh_tokens
        )
        redirect_uri = hashed_uri = request.redirect_uri
        is_used = await self._use_proof(proof, client, credentials, presented, redirect_uri)
        result = await self._rotate(client, credentials, presented, redirect_uri, hashed_uri, successors, restrictions)
        if result is not None and _must_retry(result, client, redirect_uri):
            # The bearer is a hash with the redirect URI. If an oidc client has not sent it, the grant's is used.
            hashed_uri = redirect_uri or result.grant_redirect_uri or ""
            if not is_used:
                await self._use_proof(proof, result.client, credentials, presented, hashed_uri)
            result = await self._rotate(
                result.client, credentials, presented, redirect_uri, hashed_uri, successors, restrictions
            )
        while others and result is not None and result.issued is None and result.grant_valid:
            # The master key is being changed: this may repeat a request to a node with another first key.
            successors = others.pop(0)
            result = await self._rotate(
                result.client, credentials, presented, redirect_uri, hashed_uri, successors, restrictions
            )
        if result is None:
            raise _invalid_refresh_token("strict")
        if result.issued is None:
            raise await self._error(result, request, credentials, presented, restrictions)
        if self._second_factor_of_all and not has_second_factor(result.issued.auth):
            # The user signs in again, with the factor. The new tokens are never sent, and the old one is used up.
            raise _invalid_refresh_token(result.client.profile)
        issued = result.issued
        if not result.client.rules.rotates_refresh_tokens:
            issued = issued._replace(current_token_id=None)  # the client keeps the refresh token that it has
        return await self._token_issuer.token_response(issued, successors.access_token, restrictions.scopes)

    async def _use_proof(
        self,
        proof: DpopProof | None,
        client: Client,
        credentials: ClientCredentials,
        presented: PresentedRefreshToken,
        hashed_uri: str,
    ) -> bool:
        """Uses the proof up, and returns whether it did.

        A proof is not stored for a request that cannot succeed. Otherwise old tokens would suffice to fill the table.
        """
        if proof is None or self._clients.authenticate(client, credentials, hashed_uri) is None:
            return False
        if not await self._token_store.is_refreshable(
            presented.grant_id, presented.client_id, presented.token_id, proof.jkt
        ):
            return False
        await self._proofs.use(proof, client.rules)
        return True

    async def _rotate(
        self,
        client: Client,
        credentials: ClientCredentials,
        presented: PresentedRefreshToken,
        redirect_uri: str,
        hashed_uri: str,
        successors: SuccessorTokens,
        restrictions: TokenRestrictions,
    ) -> RotationResult | None:
        """Authenticates the client and rotates the token. The statement makes all other checks."""
        matched_secret = self._clients.authenticate(client, credentials, hashed_uri)
        result = await self._token_store.rotate(
            client, presented.grant_id, presented.token_id, redirect_uri, matched_secret, successors, restrictions
        )
        if result is not None:
            self._clients.put(result.client)
        return result

    async def _error(
        self,
        result: RotationResult,
        request: TokenRequest,
        credentials: ClientCredentials,
        presented: PresentedRefreshToken,
        restrictions: TokenRestrictions,
    ) -> ApiError:
        """Returns the error of the first check that failed."""
        client = result.client
        if not request.redirect_uri and not client.rules.is_standard:
            return InvalidRequest("redirect_uri is required")
        if result.grant_exists and request.redirect_uri and not result.redirect_uri_matches:
            return InvalidGrant("redirect_uri differs from the one of the authorization request")
        if not result.authenticated:
            if result.grant_exists:
                log.warning("oauth.refresh_not_authenticated", client=client.client_id, grant=presented.grant_id[:8])
            return InvalidClient(credentials.scheme)
        if "refresh_token" not in client.grant_types:
            return UnauthorizedClient("refresh_token")
        # An older token is reported as a replay, whatever its key: a thief may have bound the newer one to another key.
        is_older = result.grant_exists and result.grant_valid and not result.is_current
        if not result.key_matches and not is_older:
            if restrictions.dpop_jkt is None:
                return InvalidDpopProof()
            return InvalidGrant("the refresh token is bound to another key than that of the DPoP proof")
        if not result.resources_match:
            return InvalidTarget("resource: expected some of those of the authorization request")
        if result.ban:
            return BannedUser(result.ban)
        if result.grant_valid and result.is_current and not result.scopes_match:
            return InvalidScope("scope: expected some of the scopes of the authorization request")
        if result.grant_exists and result.grant_valid:
            # The token was already replaced, so two parties hold it: one of them may be a thief.
            log.warning("oauth.refresh_replayed", client=client.client_id, grant=presented.grant_id[:8])
            if client.rules.is_standard:
                await self._token_store.revoke_grant(presented.grant_id, client.client_id)
        return _invalid_refresh_token(client.profile)

    async def _profile(self, request: TokenRequest, credentials: ClientCredentials) -> Profile:
        """Returns the profile of the client that the request names; the error code depends on it.

        Raises InvalidClient if the client's authentication fails. Returns "strict" if the request names no client.
        """
        if not credentials.client_id:
            return "strict"
        client = await self._clients.read(credentials.client_id)
        if client is None or self._clients.authenticate(client, credentials, request.redirect_uri) is None:
            raise InvalidClient(credentials.scheme)
        return client.profile


def _requested_scopes(text: str) -> tuple[str, ...]:
    """Returns the scopes in the order of ``SCOPES``, those that do not exist at the end."""
    names = [name for name in text.split(" ") if name]
    return tuple(dict.fromkeys([scope for scope in SCOPES if scope in names] + names))


def _must_retry(result: RotationResult, client: Client, redirect_uri: str) -> bool:
    """Returns whether a second attempt may succeed.

    It may if a concurrent request rotated the token first (this one may be a retry), if the cached
    client was out of date, or if the redirect URI for the bearer is known only now.
    """
    if result.lost_race:
        return True
    return not result.authenticated and (result.client != client or not redirect_uri)


def _invalid_refresh_token(profile: Profile) -> ApiError:
    """Returns the error for an invalid refresh token: invalid_request by §4.2, invalid_grant by RFC 6749."""
    message = "the refresh token is not valid"
    return InvalidGrant(message) if RULES[profile].is_standard else InvalidRequest(message)
