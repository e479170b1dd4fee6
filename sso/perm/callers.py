"""Who calls a permission endpoint (§4.1, §5.3): a user JWT with a device factor, or with a service JWT.

Headers come first; the fields ``jwt``, ``factor`` and ``service_jwt`` of the body are deprecated and still work.
"""

import time
from dataclasses import dataclass
from typing import Any

from sso.accounts.user_jwt import UserJwts
from sso.core.jwt import InvalidToken
from sso.core.net import Address
from sso.core.refused import Unauthorized
from sso.perm.access_keys import AccessKey, AccessKeys
from sso.perm.audit import Actor
from sso.perm.service_jwt import ServiceJwts

JWT_DOTS = 2
EXPIRED_FOR_S = 30 * 86400  # how long after its end a user JWT still names somebody, where that is allowed


@dataclass(frozen=True)
class Evidence:
    """What came with the request."""

    address: Address
    bearer: str = ""  # of the Authorization header
    factor: str | None = None
    service_jwt: str = ""
    jwt: str = ""  # of the body

    @classmethod
    def collect(
        cls, address: Address, authorization: str, factor: str | None, service_jwt: str | None, body: dict[str, Any]
    ) -> "Evidence":
        """A header wins over the body's field; a field of another type than string is no evidence."""
        scheme, _, bearer = authorization.partition(" ")
        said = {name: body[name] for name in ("jwt", "factor", "service_jwt") if isinstance(body.get(name), str)}
        return cls(
            address=address,
            bearer=bearer.strip() if scheme.lower() == "bearer" else "",
            factor=factor if factor is not None else said.get("factor"),
            service_jwt=service_jwt if service_jwt is not None else said.get("service_jwt", ""),
            jwt=said.get("jwt", ""),
        )


@dataclass(frozen=True)
class Caller:
    user_id: str  # empty: an access key or service JWT without a user, where that is allowed
    address: Address
    service_id: int | None = None  # the application of a service JWT
    key: AccessKey | None = None
    now: int = 0

    @property
    def actor(self) -> Actor:
        return Actor(self.user_id, self.service_id, str(self.address))


class Callers:
    def __init__(self, jwts: UserJwts, services: ServiceJwts, keys: AccessKeys) -> None:
        self._jwts = jwts
        self._services = services
        self._keys = keys

    async def identify(self, evidence: Evidence) -> Caller:
        """A user with a factor, or with a service JWT."""
        try:
            service_id = await self._service(evidence)
            return await self._user(evidence, evidence.bearer or evidence.jwt, service_id, expired_for=0)
        except InvalidToken:
            raise Unauthorized from None

    async def identify_for_data(self, evidence: Evidence, action: str, *, roles_only: bool) -> Caller:
        """For users' schemas, where services may also speak of users whose JWT has expired, and ask for roles alone.

        A service JWT waives the expiry of the user JWT; an access key does so for reading, and the user JWT then
        travels in the body.
        """
        try:
            service_id = await self._service(evidence)
            key = await self._access_key(evidence)
            waived = EXPIRED_FOR_S if service_id is not None or (key and action == "get") else 0
            token = evidence.jwt if key else evidence.bearer or evidence.jwt
            if not token and action == "get" and roles_only and (key or service_id is not None):
                return Caller("", evidence.address, service_id, key, int(time.time()))
            return await self._user(evidence, token, service_id, key=key, expired_for=waived)
        except InvalidToken:
            raise Unauthorized from None

    async def _service(self, evidence: Evidence) -> int | None:
        return await self._services.verify(evidence.service_jwt, evidence.address) if evidence.service_jwt else None

    async def _access_key(self, evidence: Evidence) -> AccessKey | None:
        """A JWT holds two dots; anything else is sent as an access key, and refused when it is none."""
        if not evidence.bearer or evidence.bearer.count(".") == JWT_DOTS:
            return None
        key = await self._keys.presented(evidence.bearer)
        if key is None:
            raise InvalidToken("no such access key")
        return key

    async def _user(
        self, evidence: Evidence, token: str, service_id: int | None, *, key: AccessKey | None = None, expired_for: int
    ) -> Caller:
        trusted = service_id is not None or key is not None
        if not token or (evidence.factor is None and not trusted):
            raise InvalidToken("jwt, and factor or service_jwt, are required")
        factor = None if trusted else evidence.factor
        found = await self._jwts.verify(token, evidence.address, factor=factor, expired_for=expired_for, exchanged=True)
        return Caller(found.user.user_id, evidence.address, service_id, key, int(time.time()))
