"""The grant type authorization_code (RFC 6749 section 4.1.3) with PKCE (RFC 7636 section 4.6)."""

import base64
import hashlib
import re
from typing import Any

import structlog

from sso.core.ids import secret_token
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.cache import ClientCache
from sso.oauth.errors import (
    BannedUser,
    InvalidClient,
    InvalidDpopProof,
    InvalidGrant,
    InvalidTarget,
    UnauthorizedClient,
)
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.model import UNRESTRICTED, IssuedTokens, TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.issuer import TokenIssuer
from sso.oauth.tokens.statements import MAX_CODE_FAILURES
from sso.oauth.tokens.store import RefusedCode, TokenStore

VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)

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
        issued = await self._redeem(request, credentials, access_token, restrictions, proof)
        return await self._token_issuer.token_response(issued, access_token)

    async def _redeem(
        self,
        request: TokenRequest,
        credentials: ClientCredentials,
        access_token: str,
        restrictions: TokenRestrictions,
        proof: DpopProof | None,
    ) -> IssuedTokens:
        """One statement makes all checks and redeems the code, if the cached client is up to date."""
        client = self._clients.cached(credentials.client_id)
        challenge = code_challenge(request.code_verifier)
        is_proof_used = False
        while True:
            may_redeem = client is not None and self._clients.has_redirect_uri(client, request.redirect_uri)
            result = await self._token_store.redeem(
                client,
                credentials.client_id,
                self._clients.authenticate(client, credentials, request.redirect_uri) if client else None,
                request.code,
                request.redirect_uri,
                challenge,
                access_token,
                restrictions,
                may_redeem=may_redeem and (proof is None or is_proof_used),
            )
            if isinstance(result, IssuedTokens):
                return result
            if result is None:
                raise InvalidClient(credentials.scheme) if credentials.client_id else InvalidGrant
            self._clients.put(result.client)
            if result.client != client:  # it was not cached, or has changed since it was read
                client = result.client
                continue
            await self._check(result, request, credentials, restrictions)
            if proof is None or is_proof_used:
                # All checks passed: a concurrent request has redeemed the code, or its user may not get tokens.
                raise await self._replayed(result, request.code)
            # A proof is used up only by a client that has a valid code.
            await self._proofs.use(proof, result.client.rules)
            is_proof_used = True

    async def _check(
        self,
        result: RefusedCode,
        request: TokenRequest,
        credentials: ClientCredentials,
        restrictions: TokenRestrictions,
    ) -> None:
        """Raises the error of the first check that failed. The code stays redeemable.

        Failed client authentication, the code of another client, a wrong verifier and a wrong key are counted, because
        the sender may have stolen the code.
        """
        client, code_exists = result.client, result.code_client_id is not None
        if code_exists and not result.redirect_uri_matches:
            raise InvalidGrant("redirect_uri differs from the one of the authorization request")
        if not result.authenticated:
            if code_exists:
                await self._count_failure(result, request.code)
            raise InvalidClient(credentials.scheme)
        if "authorization_code" not in client.grant_types:
            raise UnauthorizedClient("authorization_code")
        if not code_exists:
            raise InvalidGrant
        if not self._clients.has_redirect_uri(client, request.redirect_uri):
            raise InvalidGrant("redirect_uri no longer belongs to the client")
        if not result.holder_matches:
            await self._count_failure(result, request.code)
            raise InvalidGrant
        if result.is_redeemed:
            raise await self._replayed(result, request.code)
        if not result.key_matches:
            if restrictions.dpop_jkt is None:
                raise InvalidDpopProof
            await self._count_failure(result, request.code)
            raise InvalidGrant("the key of the DPoP proof differs from dpop_jkt of the authorization request")
        if not result.resources_match:
            raise InvalidTarget("resource: expected some of those of the authorization request")
        if result.ban:
            raise BannedUser(result.ban)

    async def _replayed(self, result: RefusedCode, code: str) -> InvalidGrant:
        """RFC 6749 section 4.1.2: the code was redeemed before, perhaps by a thief, so its tokens are revoked."""
        if grant_id := await self._token_store.revoke_grant_of_code(code):
            log.warning("oauth.code_replayed", client=result.client.client_id, grant=grant_id[:8])
        return InvalidGrant()

    async def _count_failure(self, result: RefusedCode, code: str) -> None:
        if await self._token_store.count_failure(code) == MAX_CODE_FAILURES:
            log.warning("oauth.code_blocked", client=result.code_client_id)


def code_challenge(verifier: str) -> str | None:
    """Returns the S256 challenge of a verifier: None without one, "" if it is malformed, which matches no code.

    A verifier for a code without a challenge does not match either: an attacker may have removed the challenge from
    the authorization request.
    """
    if not verifier:
        return None
    if not VERIFIER.fullmatch(verifier):
        return ""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
