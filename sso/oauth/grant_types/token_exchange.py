"""The grant type token-exchange (RFC 8693): a service exchanges a user's access token for a narrower one.

The new token names the service in ``act``: it acts for the user, and everybody sees it. The exchange never widens
anything: not the scopes, not the resource servers, not the lifetime, not the sign-in that the token is based on.
"""

from collections.abc import Sequence
from typing import Any

from sso.accounts.authentication_context import has_second_factor
from sso.core.ids import secret_token
from sso.core.net import Address
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.cache import ClientCache
from sso.oauth.clients.store import list_resource_servers
from sso.oauth.errors import (
    BannedSubject,
    InvalidClient,
    InvalidDpopProof,
    InvalidRequest,
    InvalidScope,
    InvalidSubjectToken,
    InvalidTarget,
    NoTokenExchange,
)
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.model import SCOPES, Client
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.exchange_store import ExchangeStore, ExchangeSubject, NewExchange
from sso.oauth.tokens.issuer import ACCESS_TOKEN_TYPE, TokenIssuer
from sso.oauth.tokens.jwt_access_tokens import AccessTokenDigests
from sso.oauth.tokens.resources import check_resources, has_identifier

MAX_CHAIN = 5  # clients that act for a user one after the other


class TokenExchangeGrant:
    def __init__(
        self,
        clients: ClientCache,
        exchanges: ExchangeStore,
        digests: AccessTokenDigests,
        token_issuer: TokenIssuer,
        proofs: DpopProofs,
        *,
        second_factor_of_all: bool,
        allow_http: bool,
    ) -> None:
        self._clients = clients
        self._exchanges = exchanges
        self._digests = digests
        self._token_issuer = token_issuer
        self._proofs = proofs
        self._second_factor_of_all = second_factor_of_all
        self._allow_http = allow_http

    async def respond(
        self, request: TokenRequest, credentials: ClientCredentials, proof: DpopProof | None, address: Address
    ) -> dict[str, Any]:
        """Returns the token response. There is no refresh token: the new token ends with the one it came from."""
        _check_types(request)
        targets = check_resources([*request.resource, *request.audience])
        access_token = secret_token()
        is_proof_used = False
        while True:
            client = await self._authenticate(credentials)
            if proof is None and client.dpop_bound_access_tokens:
                raise InvalidDpopProof
            if proof and not is_proof_used:
                await self._proofs.use(proof, client.rules)
                is_proof_used = True
            servers = await list_resource_servers(self._exchanges.database) if targets else []

            def narrow(
                subject: ExchangeSubject | None, client: Client = client, servers: Sequence[Client] = servers
            ) -> NewExchange:
                return self._narrow(subject, client, request, targets, servers, proof)

            exchanged = await self._exchanges.exchange(
                client, self._digests.of(request.subject_token), access_token, str(address), narrow
            )
            if exchanged is not None:  # otherwise the client has changed, and is checked again
                return await self._token_issuer.exchange_response(exchanged.issued, access_token, exchanged.act)

    async def _authenticate(self, credentials: ClientCredentials) -> Client:
        client = await self._clients.read(credentials.client_id) if credentials.client_id else None
        # A public client, for which the result is "", does not authenticate.
        if client is None or credentials.bearer or not self._clients.authenticate(client, credentials, ""):
            raise InvalidClient(credentials.scheme)
        if not client.token_exchange:
            raise NoTokenExchange
        return client

    def _narrow(
        self,
        subject: ExchangeSubject | None,
        client: Client,
        request: TokenRequest,
        targets: tuple[str, ...],
        servers: Sequence[Client],
        proof: DpopProof | None,
    ) -> NewExchange:
        """Returns what the exchanged token is for. Raises an error if that is more than the subject token is for."""
        if subject is None or not self._is_meant_for(client, subject):
            raise InvalidSubjectToken
        if subject.dpop_jkt is not None and (proof is None or proof.jkt != subject.dpop_jkt):
            raise InvalidSubjectToken("subject_token: expected a DPoP proof with the key that it is bound to")
        if subject.ban:
            raise BannedSubject(subject.ban)
        if self._second_factor_of_all and not has_second_factor(subject.auth):
            raise InvalidSubjectToken("subject_token: expected a sign-in with a second factor")
        if client.client_id in subject.act:
            raise InvalidSubjectToken("subject_token: the client acts for the user already")
        if len(subject.act) >= MAX_CHAIN:
            raise InvalidSubjectToken(f"subject_token: expected one that was exchanged less than {MAX_CHAIN} times")
        return NewExchange(
            subject=subject,
            scopes=_narrow_scopes(subject.scopes, request.scope),
            resources=self._narrow_resources(subject, targets, servers),
            act=(client.client_id, *subject.act),
            dpop_jkt=proof.jkt if proof else None,
        )

    def _is_meant_for(self, client: Client, subject: ExchangeSubject) -> bool:
        """Returns whether the token was issued to the client, or the client is a resource server that it is for."""
        if subject.client_id == client.client_id:
            return True
        if not client.resource_server:
            return False
        if not subject.resources:
            return 0 < subject.application_id == client.application_id
        return any(has_identifier(client, resource, allow_http=self._allow_http) for resource in subject.resources)

    def _narrow_resources(
        self, subject: ExchangeSubject, targets: tuple[str, ...], servers: Sequence[Client]
    ) -> tuple[str, ...]:
        if subject.resources:
            if not set(targets) <= set(subject.resources):
                raise InvalidTarget("audience, resource: expected some of the resources of the subject token")
            return targets or subject.resources
        own = [server for server in servers if 0 < server.application_id == subject.application_id]
        for target in targets:
            if not any(has_identifier(server, target, allow_http=self._allow_http) for server in own):
                raise InvalidTarget(
                    "audience, resource: expected resource servers of the application of the subject token"
                )
        return targets


def _check_types(request: TokenRequest) -> None:
    request.require("subject_token", "subject_token_type")
    if request.subject_token_type != ACCESS_TOKEN_TYPE:
        raise InvalidRequest(f"subject_token_type: expected {ACCESS_TOKEN_TYPE}")
    if request.requested_token_type not in ("", ACCESS_TOKEN_TYPE):
        raise InvalidRequest(f"requested_token_type: expected {ACCESS_TOKEN_TYPE} or nothing")
    if request.actor_token:
        raise InvalidRequest("actor_token: expected none, because the client that authenticates is the actor")


def _narrow_scopes(scopes: Sequence[str], requested: str) -> tuple[str, ...]:
    """Returns the requested scopes, or all. A token without a refresh token has no use for offline_access."""
    allowed = set(scopes) - {"offline_access"}
    names = set(requested.split(" ")) - {""} or allowed
    if not names <= allowed:
        raise InvalidScope("scope: expected some of the scopes of the subject token, without offline_access")
    return tuple(scope for scope in SCOPES if scope in names)
