"""POST /proxy/oauth/exchange and exchangeToken: exchange a user JWT for an ID token, an access token for a user JWT.

These are endpoints of their own (§4.2), not a grant type of the token endpoint.
"""

from typing import Any

from sso.accounts.authentication_context import GAME_AUTH, has_second_factor
from sso.accounts.second_factor.requirement import UsedFactorRequirement
from sso.accounts.user_jwt import SITE_AUTH, ExchangeSource, UserJwts
from sso.core.jwt import InvalidToken
from sso.core.net import Address
from sso.db.clock import DatabaseClock
from sso.oauth.errors import InvalidAccessToken
from sso.oauth.tokens.issuer import TokenIssuer
from sso.oauth.tokens.store import TokenStore
from sso.oauth.tokens.userinfo import require_access_token


class UserJwtExchange:
    def __init__(
        self,
        token_store: TokenStore,
        token_issuer: TokenIssuer,
        jwts: UserJwts,
        id_token_s: int,
        clock: DatabaseClock,
        used_factor: UsedFactorRequirement,
    ) -> None:
        self._used_factor = used_factor
        self._token_store = token_store
        self._token_issuer = token_issuer
        self._jwts = jwts
        self._id_token_s = id_token_s
        self._clock = clock

    async def to_id_token(self, user_jwt: str, address: Address, factor: str | None) -> dict[str, Any]:
        """Returns an ID token that expires no later than the user JWT. No endpoint of this service accepts it."""
        try:
            caller = await self._jwts.verify(user_jwt, address, factor=factor, exchanged=True)
        except InvalidToken:
            raise InvalidAccessToken from None
        if caller.user.is_guest:  # an ID token says nothing about guests, so a site would take one for an account
            raise InvalidAccessToken
        now = int(self._clock.now())
        exp = min(now + self._id_token_s, caller.claims["exp"])
        id_token = self._token_issuer.exchanged_id_token(caller.user.user_id, now, exp)
        return {"id_token": id_token, "expires_in": exp - now}

    async def to_user_jwt(self, access_token: str, factor: str) -> dict[str, Any]:
        """Returns a user JWT. Only a first-party client may bind it to a device, which gives it the device's rights."""
        access = await require_access_token(self._token_store, access_token)
        # A resource server must not get the rights of its caller, and a client that registered itself no user JWT.
        if access.resources or access.act or access.is_registered or "openid" not in access.scopes:
            raise InvalidAccessToken
        self._used_factor.check(second_factor=has_second_factor(access.auth))
        source = ExchangeSource(
            digest=self._token_store.digests.of(access_token),
            user_id=access.user_id,
            nick=access.nick if "profile" in access.scopes else None,
            valid_from=access.valid_from,
            auth_time=access.auth_time,
            # A device is confirmed like a game: on another machine, perhaps by someone who does not have the device.
            auth=GAME_AUTH if access.is_of_device else SITE_AUTH,
            second_factor=has_second_factor(access.auth),
            exp=access.exp,
            now=access.now,
        )
        return {"token": self._jwts.issue_exchanged(source, factor if access.first_party else "")}
