"""POST /proxy/oauth/token: a code or a refresh token becomes tokens. The code or token names the client."""

from typing import Any

import structlog

from sso.core.errors import ApiError
from sso.core.ids import secret_token
from sso.oauth.client_auth import ClientCredentials, challenge_of, proof, verifies
from sso.oauth.client_store import ClientStore
from sso.oauth.errors import InvalidClient, InvalidGrant, InvalidRequest
from sso.oauth.model import Client, IssuedTokens, Profile
from sso.oauth.redirect_uris import redirect_of
from sso.oauth.token_store import CODE_FAILURES, RotationResult, StoredCode, TokenStore
from sso.oauth.tokens import PresentedRefreshToken, TokenIssuer

log = structlog.get_logger()


class TokenEndpoint:
    def __init__(self, clients: ClientStore, grants: TokenStore, tokens: TokenIssuer, *, any_http: bool) -> None:
        self._any_http = any_http
        self._clients = clients
        self._grants = grants
        self._tokens = tokens
        # Who a client was when last seen: what is judged by it counts only if the database says it still is so.
        self._last_seen: dict[str, Client] = {}

    async def redeem(self, given: ClientCredentials, code: str, redirect_uri: str, verifier: str) -> dict[str, Any]:
        """authorization_code."""
        access_token = secret_token()
        issued = await self._redeem_at_once(given, code, redirect_uri, verifier, access_token)
        if issued is None:
            issued = await self._redeem_with_care(given, code, redirect_uri, verifier, access_token)
        return await self._tokens.answer(issued, access_token)

    async def _redeem_at_once(
        self, given: ClientCredentials, code: str, redirect_uri: str, verifier: str, access_token: str
    ) -> IssuedTokens | None:
        """By who the client was when last seen. None says nothing about the code: it must be looked at."""
        client, challenge = self._last_seen.get(given.client_id), challenge_of(verifier)
        if client is None or (verifier and challenge is None) or not self._is_theirs(client, redirect_uri):
            return None
        proved = proof(client, self._clients.secrets(client), given, redirect_uri)
        if proved is None:
            return None
        return await self._grants.redeem(client, proved, code, redirect_uri, challenge, access_token)

    async def _redeem_with_care(
        self, given: ClientCredentials, code: str, redirect_uri: str, verifier: str, access_token: str
    ) -> IssuedTokens:
        """By who the client is, or the refusal that is due."""
        judged = None
        while True:
            found = await self._grants.find_code(code, given.client_id)
            if found is None:
                raise InvalidClient(given.scheme) if given.client_id else InvalidGrant
            self._last_seen[found.client.client_id] = found.client
            proved = await self._check_code(found, given, code, redirect_uri, verifier)
            if found.used or found.client == judged:
                break
            judged = found.client
            issued = await self._grants.redeem(judged, proved, code, redirect_uri, found.challenge, access_token)
            if issued is not None:
                return issued
            # The client may have changed in between, and be as good as before: that shows at another look.
        # Used before, by this client: one of the two was not the client, and nobody knows which.
        if ended := await self._grants.end_what_it_gave(code):
            log.warning("oauth.code_replayed", client=found.client.client_id, grant=ended[:8])
        raise InvalidGrant

    async def _check_code(
        self, found: StoredCode, given: ClientCredentials, code: str, redirect_uri: str, verifier: str
    ) -> str:
        """The proof, if the code is this client's, for this redirect_uri and this verifier; or a refusal that leaves it
        as it was."""
        if found.code_client is not None and found.redirect_uri != redirect_uri:
            raise InvalidGrant("redirect_uri is not the one of the authorization")
        proved = proof(found.client, self._clients.secrets(found.client), given, redirect_uri)
        if proved is None:
            if found.code_client is not None:
                await self._count_failure(code, found.code_client)
            raise InvalidClient(given.scheme)
        if found.code_client is None:
            raise InvalidGrant
        if not self._is_theirs(found.client, redirect_uri):
            raise InvalidGrant("redirect_uri is not the client's any more")
        if found.code_client != found.client.client_id or not verifies(found.challenge, verifier):
            await self._count_failure(code, found.code_client)
            raise InvalidGrant
        return proved

    def _is_theirs(self, client: Client, redirect_uri: str) -> bool:
        return (
            redirect_of(redirect_uri, client.redirect_hosts, client.redirect_uris, any_http=self._any_http) is not None
        )

    async def _count_failure(self, code: str, client_id: str) -> None:
        if await self._grants.count_failure(code) == CODE_FAILURES:
            log.warning("oauth.code_burnt", client=client_id)

    async def refresh(self, given: ClientCredentials, refresh_token: str, redirect_uri: str) -> dict[str, Any]:
        """refresh_token."""
        presented = self._tokens.read_refresh(refresh_token)
        if presented is None or given.client_id not in ("", presented.client_id):
            raise bad_refresh(await self._profile_of(given, redirect_uri))
        client = self._last_seen.get(presented.client_id) or await self._clients.get(presented.client_id)
        if client is None:
            raise bad_refresh("strict")
        access_token = secret_token()
        turn = await self._turn(client, given, presented, redirect_uri, redirect_uri, access_token)
        if turn is not None and (turn.raced or (not turn.proved and _worth_another_look(client, turn, redirect_uri))):
            bound = redirect_uri or turn.bound_uri or ""
            turn = await self._turn(turn.client, given, presented, redirect_uri, bound, access_token)
        if turn is None:
            raise bad_refresh("strict")
        if turn.issued is not None:
            return await self._tokens.answer(turn.issued, access_token)
        return await self._refuse(turn, given, presented, redirect_uri)

    async def _turn(
        self,
        client: Client,
        given: ClientCredentials,
        presented: PresentedRefreshToken,
        redirect_uri: str,
        bound: str,
        access_token: str,
    ) -> RotationResult | None:
        proved = proof(client, self._clients.secrets(client), given, bound)
        turn = await self._grants.rotate(client, presented.grant_id, presented.head, redirect_uri, proved, access_token)
        if turn is not None:
            self._last_seen[turn.client.client_id] = turn.client
        return turn

    async def _refuse(
        self, turn: RotationResult, given: ClientCredentials, presented: PresentedRefreshToken, redirect_uri: str
    ) -> dict[str, Any]:
        client = turn.client
        if not redirect_uri and client.profile == "strict":
            raise InvalidRequest("redirect_uri is required")
        if turn.found and redirect_uri and not turn.same_uri:
            raise InvalidGrant("redirect_uri is not the one of the authorization")
        if not turn.proved:
            if turn.found:
                log.warning("oauth.refresh_not_authenticated", client=client.client_id, grant=presented.grant_id[:8])
            raise InvalidClient(given.scheme)
        if turn.found and turn.alive:
            log.warning("oauth.refresh_replayed", client=client.client_id, grant=presented.grant_id[:8])
            if client.profile == "oidc":
                await self._grants.revoke_grant(presented.grant_id, client.client_id)
        raise bad_refresh(client.profile)

    async def _profile_of(self, given: ClientCredentials, redirect_uri: str) -> Profile:
        """Whose words to use for a token that names nobody, or another: those of the client that the request names."""
        if not given.client_id:
            return "strict"
        client = await self._clients.get(given.client_id)
        if client is None or proof(client, self._clients.secrets(client), given, redirect_uri) is None:
            raise InvalidClient(given.scheme)
        return client.profile


def bad_refresh(profile: Profile) -> ApiError:
    message = "the refresh token is not valid"
    return InvalidGrant(message) if profile == "oidc" else InvalidRequest(message)


def _worth_another_look(client: Client, turn: RotationResult, redirect_uri: str) -> bool:
    """The client has changed since it was last seen, or only now it is known which redirect_uri a bearer is for."""
    return turn.client != client or not redirect_uri
