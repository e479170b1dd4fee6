"""POST /proxy/oauth/exchangeJwt: an application's server renews a user's JWT with its access key (§4.8)."""

from typing import Any

from sso.accounts.model import LoginOptions
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.second_factor.requirement import UsedFactorRequirement
from sso.accounts.user_jwt import UserJwts, inherited_from
from sso.accounts.user_jwt_claims import has_factor, has_used_second_factor
from sso.core.errors import Forbidden, Unauthorized
from sso.core.jwt import ExpiredToken, InvalidToken
from sso.core.net import Address
from sso.perm.caller import EXPIRED_FOR_S
from sso.perm.stores.access_keys import AccessKeys


class ExchangeJwt:
    def __init__(
        self, jwts: UserJwts, keys: AccessKeys, applications: ApplicationDirectory, requirement: UsedFactorRequirement
    ) -> None:
        self._requirement = requirement
        self._jwts = jwts
        self._keys = keys
        self._applications = applications

    async def renew(self, access_key: str, jwt: str, factor: str, address: Address) -> str:
        """Returns a new JWT for the access key's application, for the same user and device as the old JWT.

        The old JWT may have expired up to `EXPIRED_FOR_S` ago. The new one keeps its restrictions, and expires
        no later than the maximum time after the original sign-in.
        """
        if not access_key:
            raise Unauthorized("invalid token: an access key is required (Authorization: Bearer <access key>)")
        key = await self._keys.authenticate(access_key)
        if key is None:
            raise Unauthorized
        try:
            caller = await self._jwts.verify(jwt, address, factor=None, expired_for=EXPIRED_FOR_S)
        except ExpiredToken:
            raise Unauthorized("invalid token: the JWT has expired") from None
        except InvalidToken:
            raise Unauthorized from None
        claims: dict[str, Any] = caller.claims
        self._requirement.check(second_factor=has_used_second_factor(claims))
        if not has_factor(claims, factor):
            raise Unauthorized("invalid token: factor is not the one that the JWT was issued for")
        if claims.get("app_id", key.application_id) != key.application_id:
            raise Forbidden("jwt: belongs to another application")
        await self._applications.permissions(caller.user, address, (key.application_id,))
        options = LoginOptions(address=address, factor=factor, jwt_public_key=claims.get("pub", ""))
        try:
            validated_at = await self._jwts.revalidate(caller)
        except ExpiredToken:
            raise Unauthorized("invalid token: the sign-in is too long ago") from None
        except InvalidToken:
            raise Unauthorized from None
        return self._jwts.issue(
            caller.user,
            options,
            claims["auth"],
            key.application_id,
            validated_at=validated_at,
            inherited=inherited_from(claims),
        )
