"""Authentication of the caller of a permission endpoint (§4.1, §5.3): a user JWT with a device factor.

At some endpoints a service JWT or an access key replaces the factor. Headers take precedence over the fields ``jwt``,
``factor`` and ``service_jwt`` of the body, which are deprecated and still work.
"""

from typing import Any, NamedTuple, Protocol, TypeVar

from sso.accounts.token_holder import TokenHolder
from sso.accounts.user_jwt import UserJwts
from sso.accounts.user_jwt_claims import (
    has_factor,
    has_used_second_factor,
    is_from_device_key,
    is_from_game,
    is_from_ticket,
)
from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden, Unauthorized
from sso.core.jwt import ExpiredToken, InvalidToken, looks_like_jwt
from sso.core.net import Address
from sso.db.clock import DatabaseClock
from sso.perm.accepted_credentials import EndpointRule, Subject, questions_of
from sso.perm.credentials.service_jwt import ServiceJwts
from sso.perm.errors import InsufficientAuthentication
from sso.perm.stores.access_keys import AccessKey, AccessKeys

T = TypeVar("T")

EXPIRED_FOR_S = 30 * 86400  # how long ago a user JWT may have expired, at endpoints that accept expired ones


class PresentedCredentials(NamedTuple):
    """The credentials that came with a request."""

    address: Address
    authorization: str = ""
    factor: str | None = None
    service_jwt: str = ""
    jwt: str = ""  # from the body
    address_signed_by: str = (
        ""  # the id of the access key that signed ``address``; empty for the address of the connection
    )

    @classmethod
    def collect(
        cls, address: Address, authorization: str, factor: str | None, service_jwt: str | None, body: dict[str, Any]
    ) -> "PresentedCredentials":
        """A header takes precedence over the field of the body; a field that is not a string is ignored."""
        if factor is None:
            factor = _text_or(None, body, "factor")
        if service_jwt is None:
            service_jwt = _text_or("", body, "service_jwt")
        return cls(address, authorization, factor, service_jwt, _text_or("", body, "jwt"))

    @property
    def bearer(self) -> str:
        scheme, _, bearer = self.authorization.partition(" ")
        return bearer.strip() if scheme.lower() == "bearer" else ""

    @property
    def access_key(self) -> str:
        """A JWT has two dots; any other bearer is an access key."""
        bearer = self.bearer
        return "" if looks_like_jwt(bearer) else bearer


class Caller(NamedTuple):
    user_id: str  # empty if the request has only an access key or a service JWT
    address: Address | None  # None: a command of the operator, which has no address
    service_id: int | None = None  # the application of a service JWT
    key: AccessKey | None = None
    now: int = 0
    has_factor: bool = False  # the device factor was proved; otherwise a service JWT or an access key replaces it
    key_replaces_factor: bool = False
    is_site: bool = False  # the user JWT has no factor: a web site got it in exchange for an access token
    address_signed_by: str = (
        ""  # the id of the access key that signed ``address``; empty for the address of the connection
    )
    in_management: bool = False  # the request came to the management API, where MANAGEMENT_RIGHTS count
    is_operator: bool = False  # a service client of the central application, or a command: it has every right
    second_factor_missing: bool = False  # the service requires one, and the sign-in was without: no rights over others
    client_id: str | None = None  # the service client whose access token the request has
    operator: str = ""  # the account of the operating system that runs a command

    @property
    def actor(self) -> AuditActor:
        if self.operator:
            return AuditActor(operator=self.operator)
        key_id = self.key.id if self.key else self.address_signed_by or None
        return AuditActor(self.user_id, self.service_id, str(self.address), key_id, client_id=self.client_id)

    @property
    def subject(self) -> str:
        """Names the caller where the requests of each caller are counted or take turns: a user, or an application."""
        if self.operator:
            return "operator"
        if self.service_id is not None:
            return f"application {self.service_id}"
        return f"user {self.user_id}" if self.user_id or self.key is None else f"application {self.key.application_id}"

    @property
    def connection_address(self) -> Address | None:
        """None if an application signed the address: a signed address counts at that application only."""
        return None if self.address_signed_by else self.address


def _text_or(default: T, body: dict[str, Any], name: str) -> str | T:
    value = body.get(name)
    return value if isinstance(value, str) else default


class CallerLookup(Protocol):
    """Finds the user of a user JWT, and an access key by its value."""

    def signed_claims(self, token: str) -> dict[str, Any] | None:
        """Returns the claims of a token whose signature this request has verified; None for other tokens."""
        ...

    async def find_holder(self, user_id: str, sign_in_id: str) -> TokenHolder | None: ...

    async def find_access_key(self, secret: str) -> AccessKey | None: ...


class _StoreLookup:
    def __init__(self, jwts: UserJwts, keys: AccessKeys) -> None:
        self.find_holder = jwts.find_holder
        self.find_access_key = keys.authenticate

    def signed_claims(self, _token: str) -> None:
        return None


class CallerAuthenticator:
    def __init__(
        self,
        jwts: UserJwts,
        service_jwts: ServiceJwts,
        keys: AccessKeys,
        clock: DatabaseClock,
        *,
        game_admin: bool,
        requires_second_factor: bool = False,
        base_url: str = "",
    ) -> None:
        """``requires_second_factor``: of users with administrative rights, who set one up at ``base_url``."""
        self._requires_second_factor = requires_second_factor
        self._base_url = base_url
        self._jwts = jwts
        self._service_jwts = service_jwts
        self._lookup: CallerLookup = _StoreLookup(jwts, keys)
        self._clock = clock
        self._game_admin = game_admin

    async def authenticate(
        self,
        credentials: PresentedCredentials,
        rule: EndpointRule,
        fields: dict[str, Any],
        lookup: CallerLookup | None = None,
    ) -> Caller:
        """Returns the caller, if the credentials suffice for this endpoint. `Authorizer` checks them against the
        application.

        At meta/data and check, the user JWT may have expired if the request has a service JWT, or if it is a get with
        an access key. A get of roles needs no user JWT at all then. ``lookup`` finds users and access keys that were
        read before.
        """
        lookup = lookup or self._lookup
        now = int(self._clock.now())
        service_id, client_id = await self._service(credentials)
        key = await self._access_key(credentials, lookup) if rule.subject is Subject.USER_DATA else None
        is_access_key_get = key is not None and rule.is_get(fields)
        factor_replaced = rule.replaces_factor(
            has_service_jwt=service_id is not None, is_access_key_get=is_access_key_get
        )
        token = credentials.jwt if key else credentials.bearer or credentials.jwt
        if not token:
            if factor_replaced and rule.subject is Subject.USER_DATA and (rule.user_optional or _reads_roles(fields)):
                return Caller(
                    "",
                    credentials.address,
                    service_id,
                    key,
                    now,
                    key_replaces_factor=is_access_key_get,
                    address_signed_by=credentials.address_signed_by,
                    client_id=client_id,
                )
            raise _missing_jwt(credentials)
        max_expired_s = EXPIRED_FOR_S if factor_replaced and rule.subject is Subject.USER_DATA else 0
        claims = await self._user(token, credentials.address, max_expired_s, lookup)
        user_id: str = claims["sub"]
        # An expired JWT never proves the factor: it is accepted only because another credential replaces the factor.
        has_proved_factor = (
            claims["exp"] > now and credentials.factor is not None and has_factor(claims, credentials.factor)
        )
        if not has_proved_factor and not factor_replaced:
            raise _missing_factor(credentials)
        is_site = "fac" not in claims
        if is_site and not (rule.subject is Subject.USER_DATA and rule.is_get(fields)):
            raise Forbidden("a token that was exchanged for a web site can only read meta/data")
        if is_from_device_key(claims) and _is_administrative(rule, fields, user_id):
            raise Forbidden("a sign-in with the key of a device is not accepted for administrative requests")
        if is_from_ticket(claims) and _is_administrative(rule, fields, user_id):
            raise Forbidden("a sign-in with the ticket of a store is not accepted for administrative requests")
        if is_from_game(claims) and not self._game_admin and _is_administrative(rule, fields, user_id):
            raise Forbidden("a login from a game is not accepted for administrative requests")
        return Caller(
            user_id,
            credentials.address,
            service_id,
            key,
            now,
            has_proved_factor,
            is_access_key_get,
            is_site,
            credentials.address_signed_by,
            second_factor_missing=self._requires_second_factor and not has_used_second_factor(claims),
            client_id=client_id,
        )

    def needs_second_factor(self, error: Forbidden | None = None) -> InsufficientAuthentication:
        """Returns the error for a caller whose administrative rights do not count, because a second factor was not
        used."""
        reason = f"{error.message}; " if error is not None and error.message != Forbidden.message else ""
        return InsufficientAuthentication(
            f"{reason}administrative rights need a sign-in with a second factor: set one up at "
            f"{self._base_url}/account and sign in again with it"
        )

    async def _service(self, credentials: PresentedCredentials) -> tuple[int | None, str | None]:
        """Returns the application and the service client of the service JWT; None without one."""
        if not credentials.service_jwt:
            return None, None
        try:
            return await self._service_jwts.verify(credentials.service_jwt, credentials.address)
        except InvalidToken:
            raise Unauthorized("invalid token: the service JWT is not valid") from None

    async def _access_key(self, credentials: PresentedCredentials, lookup: CallerLookup) -> AccessKey | None:
        """Returns the access key of the request, which must be valid, or None if the request has none."""
        if not credentials.access_key:
            return None
        key = await lookup.find_access_key(credentials.access_key)
        if key is None:
            raise Unauthorized
        return key

    async def _user(self, token: str, address: Address, max_expired_s: int, lookup: CallerLookup) -> dict[str, Any]:
        try:
            return await self._jwts.verify_with(
                lookup.find_holder, token, address, expired_for=max_expired_s, signed=lookup.signed_claims(token)
            )
        except ExpiredToken:
            raise Unauthorized("invalid token: the JWT has expired") from None
        except InvalidToken:
            raise Unauthorized from None


def _missing_jwt(credentials: PresentedCredentials) -> Unauthorized:
    scheme = credentials.authorization.partition(" ")[0].lower()
    if scheme and scheme not in ("bearer", "ip"):
        return Unauthorized('invalid token: Authorization must be "Bearer <user JWT>"')
    return Unauthorized("invalid token: a user JWT is required (Authorization: Bearer <user JWT>)")


def _missing_factor(credentials: PresentedCredentials) -> Unauthorized:
    if credentials.factor is not None:
        return Unauthorized("invalid token: Factor is not the one that the JWT was issued for")
    if credentials.service_jwt or not looks_like_jwt(credentials.bearer):
        return Unauthorized(
            "invalid token: the header Factor is required, and no other credential replaces it for this request"
        )
    return Unauthorized("invalid token: the header Factor is required")


def _reads_roles(fields: dict[str, Any]) -> bool:
    data = fields.get("data")
    return fields.get("action") == "get" and isinstance(data, dict) and data.get("type") == "roles"


def _is_administrative(rule: EndpointRule, fields: dict[str, Any], user_id: str) -> bool:
    """Returns whether a request changes anything but the caller's own data, or reads other users."""
    match rule.subject:
        case Subject.CALLER:
            return False
        case Subject.USER_DATA if rule.asks_questions:
            return any(item.get("user_id", user_id) != user_id for item in questions_of(fields))
        case Subject.USER_DATA:
            data = fields.get("data")
            return isinstance(data, dict) and data.get("user_id", user_id) != user_id
        case Subject.PROJECT | Subject.APPLICATION:
            return not (rule.harmless_get and fields.get("action") == "get")
