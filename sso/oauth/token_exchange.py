"""Between the two worlds: a user JWT becomes an ID token, an access token becomes a user JWT."""

import time
from typing import Any

from sso.accounts.user_jwt import ExchangeSource, UserJwts
from sso.core.ids import digest
from sso.core.jwt import InvalidToken
from sso.core.net import Address
from sso.oauth.errors import InvalidAccessToken
from sso.oauth.token_store import TokenStore
from sso.oauth.tokens import TokenIssuer
from sso.oauth.userinfo import require_access


class TokenExchange:
    def __init__(self, grants: TokenStore, tokens: TokenIssuer, jwts: UserJwts, id_s: int) -> None:
        self._grants = grants
        self._tokens = tokens
        self._jwts = jwts
        self._id_s = id_s

    async def to_id_token(self, user_jwt: str, address: Address, factor: str | None) -> dict[str, Any]:
        """The ID token never outlives its source, and is accepted by no endpoint here."""
        try:
            caller = await self._jwts.verify(user_jwt, address, factor=factor, exchanged=True)
        except InvalidToken:
            raise InvalidAccessToken from None
        now = int(time.time())
        exp = min(now + self._id_s, caller.claims["exp"])
        id_token = self._tokens.exchanged_id_token(caller.user.user_id, now, exp)
        return {"id_token": id_token, "expires_in": exp - now}

    async def to_user_jwt(self, access_token: str, factor: str) -> dict[str, Any]:
        """Only the studio's own sites may bind it to a device, and so to what devices may do."""
        access = await require_access(self._grants, access_token)
        source = ExchangeSource(
            digest=digest(access_token),
            user_id=access.user_id,
            nick=access.nick if "profile" in access.scopes else None,
            valid_from=access.valid_from,
            auth_time=access.auth_time,
            exp=access.exp,
            now=access.now,
        )
        return {"token": self._jwts.issue_exchanged(source, factor if access.first_party else "")}
