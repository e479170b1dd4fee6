"""The caller of a permission endpoint (§4.1, §5.3): a user JWT with a device factor, or with what replaces it there.

Headers come first; the fields ``jwt``, ``factor`` and ``service_jwt`` of the body are deprecated and still work.
"""

import time
from dataclasses import dataclass
from typing import Any

from sso.accounts.user_jwt import UserJwts, has_factor, is_from_game
from sso.core.errors import Forbidden, Unauthorized
from sso.core.jwt import ExpiredToken, InvalidToken
from sso.core.net import Address
from sso.perm.credential_rules import EndpointRule, Subject
from sso.perm.credentials.access_keys import AccessKey, AccessKeys
from sso.perm.credentials.service_jwt import ServiceJwts
from sso.perm.stores.audit import AuditActor

JWT_DOTS = 2
EXPIRED_FOR_S = 30 * 86400  # how long after its end a user JWT still names somebody, where that is allowed


@dataclass(frozen=True)
class PresentedCredentials:
    """The credentials that came with a request."""

    address: Address
    authorization: str = ""
    factor: str | None = None
    service_jwt: str = ""
    jwt: str = ""  # of the body
    vouched_by: str = ""  # the access key that signed the address, if that is not the address of the connection

    @classmethod
    def collect(
        cls, address: Address, authorization: str, factor: str | None, service_jwt: str | None, body: dict[str, Any]
    ) -> "PresentedCredentials":
        """A header wins over the body's field; a field of another type than string is no evidence."""
        said = {name: body[name] for name in ("jwt", "factor", "service_jwt") if isinstance(body.get(name), str)}
        return cls(
            address=address,
            authorization=authorization,
            factor=factor if factor is not None else said.get("factor"),
            service_jwt=service_jwt if service_jwt is not None else said.get("service_jwt", ""),
            jwt=said.get("jwt", ""),
        )

    @property
    def bearer(self) -> str:
        scheme, _, bearer = self.authorization.partition(" ")
        return bearer.strip() if scheme.lower() == "bearer" else ""


@dataclass(frozen=True)
class Caller:
    user_id: str  # empty: an access key or service JWT without a user, where that is allowed
    address: Address
    service_id: int | None = None  # the application of a service JWT
    key: AccessKey | None = None
    now: int = 0
    has_factor: bool = False  # the device proved itself; otherwise a service JWT or the access key made up for it
    key_replaces_factor: bool = False
    is_site: bool = False  # a token without factor, which a web site got for an access token
    vouched_by: str = ""  # the access key with which an application says that this is the address of its client

    @property
    def actor(self) -> AuditActor:
        key_id = self.key.id if self.key else self.vouched_by or None
        return AuditActor(self.user_id, self.service_id, str(self.address), key_id)

    @property
    def own_address(self) -> Address | None:
        """None if only an application vouches for the address: what it says counts for the application alone."""
        return None if self.vouched_by else self.address


class CallerAuthenticator:
    def __init__(self, jwts: UserJwts, services: ServiceJwts, keys: AccessKeys, *, game_admin: bool) -> None:
        self._jwts = jwts
        self._services = services
        self._keys = keys
        self._game_admin = game_admin

    async def identify(self, evidence: PresentedCredentials, rule: EndpointRule, fields: dict[str, Any]) -> Caller:
        """The caller, if the credentials suffice for this endpoint whatever the application is; the desk checks that.

        For users' permissions, a service JWT waives the expiry of the user JWT, an access key does so for get, and
        either of them alone reads roles.
        """
        now = int(time.time())
        service_id = await self._service(evidence)
        key = await self._access_key(evidence) if rule.subject is Subject.USER_DATA else None
        key_reads = key is not None and fields.get("action") == "get"
        replaced = rule.replaces_factor(service=service_id is not None, key_reads=key_reads)
        token = evidence.jwt if key else evidence.bearer or evidence.jwt
        if not token:
            if replaced and rule.subject is Subject.USER_DATA and _reads_roles(fields):
                return Caller(
                    "",
                    evidence.address,
                    service_id,
                    key,
                    now,
                    key_replaces_factor=key_reads,
                    vouched_by=evidence.vouched_by,
                )
            raise _missing_jwt(evidence)
        waived = EXPIRED_FOR_S if replaced and rule.subject is Subject.USER_DATA else 0
        user_id, claims = await self._user(token, evidence.address, waived)
        # An expired JWT is good only for what waived its expiry, whatever the device proves.
        proved = claims["exp"] > now and evidence.factor is not None and has_factor(claims, evidence.factor)
        if not proved and not replaced:
            raise _missing_factor(evidence)
        is_site = "fac" not in claims
        if is_site and not (rule.subject is Subject.USER_DATA and fields.get("action") == "get"):
            raise Forbidden("a token that was exchanged for a web site only reads meta/data")
        if is_from_game(claims) and not self._game_admin and _is_administrative(rule, fields, user_id):
            raise Forbidden("a sign-in to a game is not enough for administrative calls")
        return Caller(user_id, evidence.address, service_id, key, now, proved, key_reads, is_site, evidence.vouched_by)

    async def _service(self, evidence: PresentedCredentials) -> int | None:
        if not evidence.service_jwt:
            return None
        try:
            return await self._services.verify(evidence.service_jwt, evidence.address)
        except InvalidToken:
            raise Unauthorized("invalid token: the service JWT is not valid") from None

    async def _access_key(self, evidence: PresentedCredentials) -> AccessKey | None:
        """A JWT holds two dots; any other bearer is meant as an access key, and refused if it is none."""
        if not evidence.bearer or evidence.bearer.count(".") == JWT_DOTS:
            return None
        key = await self._keys.presented(evidence.bearer)
        if key is None:
            raise Unauthorized
        return key

    async def _user(self, token: str, address: Address, waived: int) -> tuple[str, dict[str, Any]]:
        try:
            found = await self._jwts.verify(token, address, factor=None, expired_for=waived, exchanged=True)
        except ExpiredToken:
            raise Unauthorized("invalid token: the JWT has expired") from None
        except InvalidToken:
            raise Unauthorized from None
        return found.user.user_id, found.claims


def _missing_jwt(evidence: PresentedCredentials) -> Unauthorized:
    scheme = evidence.authorization.partition(" ")[0].lower()
    if scheme and scheme not in ("bearer", "ip"):
        return Unauthorized('invalid token: Authorization must be "Bearer <user JWT>"')
    return Unauthorized("invalid token: a user JWT is required (Authorization: Bearer <user JWT>)")


def _missing_factor(evidence: PresentedCredentials) -> Unauthorized:
    if evidence.factor is not None:
        return Unauthorized("invalid token: Factor is not the one that the JWT was issued for")
    if evidence.service_jwt or evidence.bearer.count(".") != JWT_DOTS:
        return Unauthorized("invalid token: the header Factor is required, nothing replaces it in this call")
    return Unauthorized("invalid token: the header Factor is required")


def _reads_roles(fields: dict[str, Any]) -> bool:
    data = fields.get("data")
    return fields.get("action") == "get" and isinstance(data, dict) and data.get("type") == "roles"


def _is_administrative(rule: EndpointRule, fields: dict[str, Any], user_id: str) -> bool:
    """Whether a call changes something outside the caller's own data, or reads other users."""
    match rule.subject:
        case Subject.CALLER:
            return False
        case Subject.USER_DATA:
            data = fields.get("data")
            return isinstance(data, dict) and data.get("user_id", user_id) != user_id
        case Subject.PROJECT | Subject.APPLICATION:
            return not (rule.harmless_get and fields.get("action") == "get")
