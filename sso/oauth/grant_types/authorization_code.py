"""The grant type authorization_code (RFC 6749 section 4.1.3) with PKCE (RFC 7636 section 4.6)."""

from typing import Any

import structlog

from sso.core.ids import secret_token
from sso.oauth.authorization.pkce import code_challenge, verify_code_verifier
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.cache import ClientCache
from sso.oauth.errors import InvalidClient, InvalidDpopProof, InvalidGrant, InvalidTarget, UnauthorizedClient
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.model import UNRESTRICTED, IssuedTokens, TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.issuer import TokenIssuer
from sso.oauth.tokens.statements import MAX_CODE_FAILURES
from sso.oauth.tokens.store import StoredCode, TokenStore

log = structlog.get_logger()


class AuthorizationCodeGrant:
    def __init__(
        self, clients: ClientCache, token_store: TokenStore, token_issuer: TokenIssuer, proofs: DpopProofs
    ) -> None:
        self._clients = clients
        self._proofs = proofs
        self._token_store = token_store
        self._token_issuer = token_issuer

    async def respond(
        self,
        request: TokenRequest,
        credentials: ClientCredentials,
        restrictions: TokenRestrictions = UNRESTRICTED,
        proof: DpopProof | None = None,
    ) -> dict[str, Any]:
        """Redeems the code and returns the token response."""
        request.require("code", "redirect_uri")
        access_token = secret_token()
        issued = None
        challenge = code_challenge(request.code_verifier)
        # Fast path: one statement confirms the client, checks the code with its redirect URI and challenge, and redeems
        # it. A malformed verifier has no challenge. A proof is used up only by a client that has a valid code.
        if proof is None and (challenge or not request.code_verifier):
            authenticated = self._clients.authenticate_cached(credentials, request.redirect_uri)
            if authenticated:
                client, matched_secret = authenticated
                issued = await self._token_store.redeem(
                    client, matched_secret, request.code, request.redirect_uri, challenge, access_token, restrictions
                )
        if issued is None:
            issued = await self._redeem_step_by_step(request, credentials, access_token, restrictions, proof)
        return await self._token_issuer.token_response(issued, access_token)

    async def _redeem_step_by_step(
        self,
        request: TokenRequest,
        credentials: ClientCredentials,
        access_token: str,
        restrictions: TokenRestrictions,
        proof: DpopProof | None,
    ) -> IssuedTokens:
        """Slow path: reads the code and the client, makes the checks one by one, and redeems the code."""
        checked_client = None
        while True:
            stored = await self._token_store.find_code(request.code, credentials.client_id)
            if stored is None:
                raise InvalidClient(credentials.scheme) if credentials.client_id else InvalidGrant
            self._clients.put(stored.client)
            matched_secret = await self._check(stored, request, credentials)
            if stored.is_redeemed or stored.client == checked_client:
                break
            await self._check_restrictions(stored, request.code, restrictions)
            if proof and checked_client is None:
                await self._proofs.use(proof)
            issued = await self._token_store.redeem(
                stored.client,
                matched_secret,
                request.code,
                request.redirect_uri,
                stored.challenge,
                access_token,
                restrictions,
            )
            if issued is not None:
                return issued
            # The client may have changed since it was read; read it again and retry.
            checked_client = stored.client
        # RFC 6749 section 4.1.2: the code was redeemed before, perhaps by a thief, so its tokens are revoked.
        if grant_id := await self._token_store.revoke_grant_of_code(request.code):
            log.warning("oauth.code_replayed", client=stored.client.client_id, grant=grant_id[:8])
        raise InvalidGrant

    async def _check(self, stored: StoredCode, request: TokenRequest, credentials: ClientCredentials) -> str:
        """Returns the encrypted secret that matched the credentials, or raises an error.

        The code stays redeemable. Failed client authentication, the code of another client and a wrong verifier are
        counted, because the sender may have stolen the code.
        """
        code_exists = stored.code_client_id is not None
        # The redirect URI is that of the authorization request.
        if code_exists and stored.redirect_uri != request.redirect_uri:
            raise InvalidGrant("redirect_uri differs from the one of the authorization request")
        # Authenticate the client.
        matched_secret = self._clients.authenticate(stored.client, credentials, request.redirect_uri)
        if matched_secret is None:
            if code_exists:
                await self._count_failure(stored, request.code)
            raise InvalidClient(credentials.scheme)
        if "authorization_code" not in stored.client.grant_types:
            raise UnauthorizedClient("authorization_code")
        # The code exists, and its redirect URI still belongs to the client.
        if not code_exists:
            raise InvalidGrant
        if not self._clients.has_redirect_uri(stored.client, request.redirect_uri):
            raise InvalidGrant("redirect_uri no longer belongs to the client")
        # The code was issued to this client, and the verifier matches its challenge.
        is_own_code = stored.code_client_id == stored.client.client_id
        if not is_own_code or not verify_code_verifier(stored.challenge, request.code_verifier):
            await self._count_failure(stored, request.code)
            raise InvalidGrant
        return matched_secret

    async def _check_restrictions(self, stored: StoredCode, code: str, restrictions: TokenRestrictions) -> None:
        """Checks the key and the resources of the request against those of the code. The code stays redeemable."""
        if restrictions.dpop_jkt is None and (stored.dpop_jkt or stored.client.dpop_bound_access_tokens):
            raise InvalidDpopProof
        if stored.dpop_jkt not in (None, restrictions.dpop_jkt):
            await self._count_failure(stored, code)
            raise InvalidGrant("the key of the DPoP proof differs from dpop_jkt of the authorization request")
        if stored.resources and not set(restrictions.resources) <= set(stored.resources):
            raise InvalidTarget("resource: expected some of those of the authorization request")

    async def _count_failure(self, stored: StoredCode, code: str) -> None:
        if await self._token_store.count_failure(code) == MAX_CODE_FAILURES:
            log.warning("oauth.code_blocked", client=stored.code_client_id)
