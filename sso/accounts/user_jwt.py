"""The user JWT: issued to a device that has a factor, and verified here only."""

import base64
from typing import Any

from msgspec import Struct

from sso.accounts.model import LoginOptions, User
from sso.accounts.ports import AccessTokenLookup
from sso.accounts.token_holder import FindHolder, TokenHolder, check_holder, issued_after
from sso.accounts.user_jwt_claims import check_end, factor_claims, has_factor, has_used_second_factor, sign_in_of
from sso.accounts.user_store import UserStore
from sso.core.ids import is_user_id, record_id
from sso.core.jwt import ExpiredToken, InvalidToken, Verifier
from sso.core.net import Address, contains, intersection, parse_network
from sso.core.verified_signatures import VerifiedSignatures
from sso.db.clock import DatabaseClock
from sso.keys.keyset import KeySet

USER_TYP = "user_token"
SITE_AUTH = "openid"  # after a login to a site
EXCHANGED_TYP = "exchanged_token"  # made from an access token, accepted in place of a user JWT


class JwtUser(Struct, frozen=True):
    """The user and the claims of a verified user JWT."""

    user: User
    claims: dict[str, Any]


class InheritedLimits(Struct, frozen=True):
    """The limits of the credential that a JWT derives from. The JWT never allows more, and never for longer.

    The defaults suit a new sign-in.
    """

    auth_time: int | None = None  # Unix seconds of the original sign-in; None: now; 0: no proof is known
    ends: int = 0  # Unix seconds at which the JWT and its renewals expire; 0: the maximum time after ``auth_time``
    ips: tuple[str, ...] | None = None  # networks in CIDR form that the source works from; None means everywhere
    sign_in_id: str = ""  # the JWT is void when this sign-in ends; "" for a JWT of an older version
    second_factor: bool = False  # one was used for the original sign-in


NEW_SIGN_IN = InheritedLimits()


class ExchangeSource(Struct, frozen=True):
    """The access token that an exchanged token is made from. Times come from the database, in Unix seconds."""

    digest: bytes
    user_id: str
    nick: str | None  # None if the access token does not include the profile
    valid_from: int
    auth_time: int  # 0 if no proof is known
    auth: str
    second_factor: bool
    exp: int
    now: int


class UserJwts:
    def __init__(
        self,
        keys: KeySet,
        users: UserStore,
        access_tokens: AccessTokenLookup,
        issuer: str,
        life_s: int,
        max_s: int,
        clock: DatabaseClock,
    ) -> None:
        self._keys = keys
        self._users = users
        self._access_tokens = access_tokens
        self._issuer = issuer
        self._life_s = life_s
        self._max_s = max_s  # from the original sign-in
        self._clock = clock
        verified = VerifiedSignatures()
        self._verifier = Verifier(typ=USER_TYP, issuer=issuer, verified=verified)
        self._exchanged_verifier = Verifier(typ=(USER_TYP, EXCHANGED_TYP), issuer=issuer, verified=verified)

    def issue(
        self,
        user: User,
        options: LoginOptions,
        auth: str,
        app_id: int = 0,
        *,
        validated_at: int,
        inherited: InheritedLimits = NEW_SIGN_IN,
    ) -> str:
        """Returns a signed user JWT within the ``inherited`` limits.

        ``validated_at`` is the database time at which the user was valid.
        """
        now = self._issued_at(validated_at)
        auth_time = now if inherited.auth_time is None else inherited.auth_time
        claims: dict[str, Any] = {
            "typ": USER_TYP,
            "iss": self._issuer,
            "sub": user.user_id,
            "uid": user.user_id,
            "iat": now,
            "exp": min(now + self._life_s, self._latest_end(auth_time, inherited.ends)),
            "jti": record_id(),
            "nick": user.nick,
            "auth": auth,
            **factor_claims(options.factor, second_factor=inherited.second_factor),
            **issued_after(user.valid_from, now),
        }
        if user.is_guest:
            claims["guest"] = True
        if auth_time:
            claims["auth_time"] = auth_time
        if inherited.sign_in_id:
            claims["sid"] = inherited.sign_in_id
        if inherited.ends:
            claims["ends"] = inherited.ends
        if (ips := _addresses(options.fixed_ips, inherited.ips)) is not None:
            claims["ips"] = ips
        if options.jwt_public_key:
            claims["pub"] = options.jwt_public_key
        if app_id:
            claims["app_id"] = app_id
        return self._keys.signer().sign(claims)

    async def revalidate(self, jwt_user: JwtUser) -> int:
        """Returns the database time at which the user of a verified JWT is still valid, to renew the JWT.

        Raises InvalidToken if the user was revoked since the JWT was verified, and ExpiredToken if the inherited limits
        leave no time.
        """
        inherited = inherited_from(jwt_user.claims)
        if self._latest_end(inherited.auth_time or 0, inherited.ends) <= self._clock.now():
            raise ExpiredToken("its sign-in is too long ago")
        validated_at = await self._users.revalidate(jwt_user.user, inherited.sign_in_id)
        if validated_at is None:
            raise InvalidToken("void")
        return validated_at

    def _issued_at(self, validated_at: int) -> int:
        """Returns the ``iat`` of a token.

        It is not later than the time at which the user was valid, so that the token does not survive a revocation after
        it, and not in the future.
        """
        return min(validated_at, int(self._clock.now()))

    def _latest_end(self, auth_time: int, ends: int) -> int:
        return ends or auth_time + self._max_s

    def issue_exchanged(self, source: ExchangeSource, factor: str) -> str:
        """Returns an exchanged token, which expires and ends with its access token.

        It has no factor if ``factor`` is "". The digest of the access token is the first part of the ``jti``.
        """
        now = self._issued_at(source.now)
        claims: dict[str, Any] = {
            "typ": EXCHANGED_TYP,
            "iss": self._issuer,
            "sub": source.user_id,
            "uid": source.user_id,
            "iat": now,
            "exp": min(now + self._life_s, source.exp),
            "jti": f"{_base64url(source.digest)}.{record_id()}",
            "auth": source.auth,
            **factor_claims(factor or None, second_factor=source.second_factor),
            **issued_after(source.valid_from, now),
        }
        if source.auth_time:
            claims["auth_time"] = source.auth_time
        if source.nick is not None:
            claims["nick"] = source.nick
        return self._keys.signer().sign(claims)

    async def verify(
        self,
        token: str,
        address: Address,
        *,
        factor: str | None,
        expired_for: int = 0,
        exchanged: bool = False,
    ) -> JwtUser:
        """Raises InvalidToken unless the token is a valid user JWT of a valid user, used from an allowed address.

        ``factor`` is the one that the device sent, or None where a service JWT replaces it. ``exchanged`` also accepts
        an exchanged token.
        """
        claims = await self._verify_claims(token, address, expired_for, exchanged=exchanged)
        if factor is not None and not has_factor(claims, factor):
            raise InvalidToken("wrong factor")
        user = await self._users.get_jwt_holder(claims["sub"], sign_in_of(claims))
        check_holder(claims, user)
        assert user is not None
        return JwtUser(user, claims)

    async def verify_with(
        self,
        find_holder: FindHolder,
        token: str,
        address: Address,
        *,
        expired_for: int = 0,
        signed: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The claims of a valid user JWT or exchanged token, whose user ``find_holder`` reads. Raises InvalidToken.

        ``signed`` are the result of ``signed_claims`` for this token, if the request has verified its signature.
        """
        if signed is None:
            claims = await self._verify_claims(token, address, expired_for, exchanged=True)
        else:
            claims = signed
            check_end(claims, self._clock.now(), expired_for)
            await self._check_use(claims, address)
        check_holder(claims, await find_holder(claims["sub"], sign_in_of(claims)))
        return claims

    def signed_claims(self, token: str, expired_for: int) -> dict[str, Any] | None:
        """The claims of a token with a valid signature; None for other tokens. Reads no data."""
        try:
            return self._verify_signature(token, expired_for, exchanged=True)
        except InvalidToken:
            return None

    async def find_holder(self, user_id: str, sign_in_id: str) -> TokenHolder | None:
        return await self._users.get_jwt_holder(user_id, sign_in_id)

    def _verify_signature(self, token: str, expired_for: int, *, exchanged: bool) -> dict[str, Any]:
        verifier = self._exchanged_verifier if exchanged else self._verifier
        now = self._clock.now()
        claims = verifier.verify(token, self._keys.find, now, expired_for=expired_for)
        if not isinstance(claims.get("sub"), str) or not is_user_id(claims["sub"]):
            raise InvalidToken("bad sub")
        check_end(claims, now, expired_for)
        return claims

    async def _verify_claims(
        self, token: str, address: Address, expired_for: int, *, exchanged: bool
    ) -> dict[str, Any]:
        claims = self._verify_signature(token, expired_for, exchanged=exchanged)
        await self._check_use(claims, address)
        return claims

    async def _check_use(self, claims: dict[str, Any], address: Address) -> None:
        if claims["typ"] == EXCHANGED_TYP:
            await self._check_exchanged(claims)
        if "ips" in claims and not contains([parse_network(text) for text in claims["ips"]], address):
            raise InvalidToken("wrong address")

    async def _check_exchanged(self, claims: dict[str, Any]) -> None:
        """Raises InvalidToken or ExpiredToken if the token has expired or its access token has ended.

        ``expired_for`` does not apply to exchanged tokens. A token with a factor also ends when its client is no longer
        a first-party client.
        """
        if claims["exp"] <= self._clock.now():
            raise ExpiredToken("expired")
        try:
            digest = base64.urlsafe_b64decode(str(claims.get("jti")).partition(".")[0] + "=")
        except ValueError:
            raise InvalidToken("bad jti") from None
        if not await self._access_tokens.is_access_token_valid(digest, first_party="fac" in claims):
            raise InvalidToken("its access token has ended")


def inherited_from(claims: dict[str, Any]) -> InheritedLimits:
    """Returns the limits that a renewal keeps. JWTs without a proof, which have ``ends``, have no ``auth_time``."""
    return InheritedLimits(
        auth_time=claims.get("auth_time", 0 if "ends" in claims else claims["iat"]),
        ends=claims.get("ends", 0),
        ips=tuple(claims["ips"]) if "ips" in claims else None,
        sign_in_id=claims.get("sid", ""),
        second_factor=has_used_second_factor(claims),
    )


def _addresses(requested: tuple[str, ...], inherited: tuple[str, ...] | None) -> list[str] | None:
    """Returns the networks that a JWT works from; None means everywhere, an empty list nowhere."""
    if inherited is None:
        return list(requested) or None
    if not requested:
        return list(inherited)
    return [str(network) for network in intersection(map(parse_network, requested), map(parse_network, inherited))]


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
