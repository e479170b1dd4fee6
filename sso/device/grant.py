"""The grant type device_code (RFC 8628 section 3.4). A request may be held like the poll of a game."""

from functools import partial
from typing import assert_never

from sso.core.ban import BANNED, Ban
from sso.core.errors import ApiError
from sso.device.authorization import DeviceClients
from sso.device.session_store import DeviceSessionStore
from sso.device.token_issuer import DeviceTokenIssuer, DeviceTokens
from sso.gsid.model import DENIED, END_ERRORS, SESSION_EXPIRED, Cancelled, Failed, LoginReady, Retry
from sso.gsid.poll import AlreadyDelivered, PollHandler
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.errors import InvalidDpopProof, InvalidGrant
from sso.oauth.grant_types.token_endpoint import HeldAnswer
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.model import Client, TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.resources import ResourceServers


class AuthorizationPending(ApiError):
    code = "authorization_pending"
    message = "the user has not confirmed yet"


class SlowDown(ApiError):
    code = "slow_down"
    message = "wait 5 seconds longer between requests from now on, or hold them with the parameter wait"


class AccessDenied(ApiError):
    code = "access_denied"
    message = "the user has refused, or may not sign in"


class BannedPlayer(AccessDenied):
    recorded_message = BANNED

    def __init__(self, ban: Ban) -> None:
        super().__init__(ban.description)


class DeviceCodeExpired(ApiError):
    code = "expired_token"
    message = "device_code: has expired, request a new one"


_ERRORS = {SESSION_EXPIRED: DeviceCodeExpired, END_ERRORS[DENIED]: AccessDenied}


class DeviceGrant:
    def __init__(
        self,
        clients: DeviceClients,
        sessions: DeviceSessionStore,
        tokens: DeviceTokens,
        polls: PollHandler,
        proofs: DpopProofs,
        resource_servers: ResourceServers,
    ) -> None:
        self._clients = clients
        self._sessions = sessions
        self._tokens = tokens
        self._polls = polls
        self._proofs = proofs
        self._resource_servers = resource_servers

    async def respond(
        self, request: TokenRequest, credentials: ClientCredentials, proof: DpopProof | None = None
    ) -> HeldAnswer:
        """Returns the tokens, once. A request with ``wait`` is held until the user has decided or the time is over."""
        request.require("device_code")
        client = await self._clients.authenticate(credentials)
        restrictions = await self._restrictions(request, client, proof)
        polls = self._polls.with_issuer(DeviceTokenIssuer(self._tokens, self._proofs, client, restrictions, proof))
        counted = await self._sessions.count_request(request.device_code, client.client_id, held=request.wait > 0)
        if counted is None:
            raise InvalidGrant("device_code: expected one that was issued to this client and not used yet")
        gsid, early = counted
        if early:
            raise SlowDown
        try:
            outcome = await polls.wait_for_device(gsid, request.wait)
        except AlreadyDelivered:
            raise InvalidGrant("device_code: its tokens were delivered already") from None
        match outcome:
            case LoginReady(_, tokens, claim):
                return HeldAnswer(tokens, partial(polls.finish, claim))
            case Retry(early=True):
                await self._sessions.slow_down(gsid)
                raise SlowDown
            case Retry() | Cancelled():
                raise AuthorizationPending
            case Failed(_, ban) if ban:
                raise BannedPlayer(ban)
            case Failed(error):
                raise _ERRORS.get(error, InvalidGrant)
            case _:
                assert_never(outcome)

    async def _restrictions(self, request: TokenRequest, client: Client, proof: DpopProof | None) -> TokenRestrictions:
        """Returns what the request says about its access token."""
        resources = await self._resource_servers.require(request.resource) if request.resource else ()
        if proof is None and client.dpop_bound_access_tokens:
            raise InvalidDpopProof
        return TokenRestrictions(proof.jkt if proof else None, resources)
