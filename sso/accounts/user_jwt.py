"""The user JWT: issued to a device that has a factor, and the one place where it is believed."""

import base64
import hashlib
import hmac
import math
import time
from dataclasses import dataclass
from typing import Any, Protocol

from sso.accounts.model import LoginOptions, User
from sso.accounts.users import UserStore
from sso.core.ids import is_user_id, record_id
from sso.core.jwt import InvalidToken, Verifier
from sso.core.net import Address, contains, intersection, parse_network
from sso.keys.keyset import KeySet

TYP = "user_token"
GAME_AUTH = "gsid"  # how a user signed in who did so for a game session
EXCHANGED = "exchanged_token"  # made from an access token; stands in for a user JWT


@dataclass(frozen=True)
class Caller:
    """Who a user JWT speaks for."""

    user: User
    claims: dict[str, Any]


@dataclass(frozen=True)
class Inherited:
    """What a JWT keeps of the credential that it is derived from: it never allows more, and never for longer.

    The defaults are those of a new sign-in.
    """

    auth_time: int = 0  # Unix seconds of the original sign-in; 0 means now
    ends: int = 0  # Unix seconds; neither the JWT nor a renewal of it lives longer. 0 means no end of its own
    ips: tuple[str, ...] | None = None  # networks in CIDR form that the source works from; None means everywhere
    from_game: bool = False  # the original sign-in was that of a game session
    sign_in_id: str = ""  # the JWT is void when this sign-in is ended; "" for one of an older version


NEW_SIGN_IN = Inherited()


class UserJwts:
    def __init__(self, keys: KeySet, users: UserStore, grants: "Grants", issuer: str, life_s: int, max_s: int) -> None:
        self._keys = keys
        self._users = users
        self._grants = grants
        self._issuer = issuer
        self._life_s = life_s
        self._max_s = max_s  # from the original sign-in
        self._verifier = Verifier(typ=TYP, issuer=issuer)
        self._either = Verifier(typ=(TYP, EXCHANGED), issuer=issuer)

    def issue(
        self,
        user: User,
        options: LoginOptions,
        auth: str,
        app_id: int = 0,
        *,
        vouched: int,
        inherited: Inherited = NEW_SIGN_IN,
    ) -> str:
        """``vouched`` is the database's moment at which the user was found to be who they are.

        With ``inherited``, the JWT stays within the limits of the credential that it is derived from.
        """
        now = _issued_at(vouched, user.valid_from)
        auth_time = inherited.auth_time or now
        ends = min(auth_time + self._max_s, inherited.ends or math.inf)
        claims: dict[str, Any] = {
            "typ": TYP,
            "iss": self._issuer,
            "sub": user.user_id,
            "uid": user.user_id,
            "iat": now,
            "exp": int(min(now + self._life_s, ends)),
            "jti": record_id(),
            "nick": user.nick,
            "auth": auth,
            "auth_time": auth_time,
            "fac": factor_digest(options.factor),
        }
        if inherited.sign_in_id:
            claims["sid"] = inherited.sign_in_id
        if inherited.ends:
            claims["ends"] = inherited.ends
        if inherited.from_game and auth != GAME_AUTH:
            claims["origin"] = GAME_AUTH
        if (ips := _addresses(options.fixed_ips, inherited.ips)) is not None:
            claims["ips"] = ips
        if options.jwt_public_key:
            claims["pub"] = options.jwt_public_key
        if app_id:
            claims["app_id"] = app_id
        return self._keys.signer().sign(claims)

    async def vouch(self, caller: Caller) -> int:
        """For a new JWT in place of one: InvalidToken if everything of the user's has ended since it was verified."""
        moment = await self._users.vouch(caller.user, str(caller.claims.get("sid", "")))
        if moment is None:
            raise InvalidToken("void")
        return moment

    def issue_exchanged(
        self, user_id: str, nick: str, valid_from: int, exp: int, factor: str, grant_id: str, *, vouched: int
    ) -> str:
        """For the holder of an access token: never for longer than that lives, and only while its grant does.

        Without a factor if "" is given. The grant's id is the first part of the ``jti``.
        """
        now = _issued_at(vouched, valid_from)
        claims: dict[str, Any] = {
            "typ": EXCHANGED,
            "iss": self._issuer,
            "sub": user_id,
            "uid": user_id,
            "iat": now,
            "exp": min(now + self._life_s, exp),
            "jti": f"{grant_id}.{record_id()}",
            "nick": nick,
            "auth": "openid",
        }
        if factor:
            claims["fac"] = factor_digest(factor)
        return self._keys.signer().sign(claims)

    async def verify(
        self,
        token: str,
        address: Address,
        *,
        factor: str | None,
        expired_for: int = 0,
        exchanged: bool = False,
    ) -> Caller:
        """InvalidToken unless it is a live user JWT of a live user, used from where it may be used.

        ``factor`` is what the device says; None where a service JWT stands in for it. ``exchanged``: an exchanged
        token will do as well.
        """
        verifier = self._either if exchanged else self._verifier
        claims = verifier.verify(token, self._keys.find, time.time(), expired_for=expired_for)
        if not isinstance(claims.get("sub"), str) or not is_user_id(claims["sub"]):
            raise InvalidToken("bad sub")
        if claims["typ"] == EXCHANGED:
            await self._check_exchanged(claims)
        if factor is not None and not has_factor(claims, factor):
            raise InvalidToken("wrong factor")
        if "ips" in claims and not contains([parse_network(text) for text in claims["ips"]], address):
            raise InvalidToken("wrong address")
        user = await self._users.holder(claims["sub"], str(claims.get("sid", "")))
        if user is None or user.disabled or claims["iat"] < user.valid_from:
            raise InvalidToken("void")
        return Caller(user, claims)

    async def _check_exchanged(self, claims: dict[str, Any]) -> None:
        """No expiry is waived for it, and it ends with the grant that it came from."""
        grant_id = str(claims.get("jti")).partition(".")[0]
        if claims["exp"] <= time.time() or not await self._grants.is_alive(grant_id):
            raise InvalidToken("the access it came from has ended")


def has_factor(claims: dict[str, Any], factor: str) -> bool:
    """Whether a verified JWT was issued to the device with this factor."""
    return hmac.compare_digest(str(claims.get("fac")), factor_digest(factor))


def inherited_from(claims: dict[str, Any]) -> Inherited:
    """The limits that a renewal of a verified user JWT keeps. A JWT without ``auth_time`` is older than this claim."""
    return Inherited(
        auth_time=claims.get("auth_time", claims["iat"]),
        ends=claims.get("ends", 0),
        ips=tuple(claims["ips"]) if "ips" in claims else None,
        from_game=is_from_game(claims),
        sign_in_id=claims.get("sid", ""),
    )


def is_from_game(claims: dict[str, Any]) -> bool:
    """Whether the sign-in behind a JWT was that of a game session, also if the JWT was derived since."""
    return GAME_AUTH in (claims.get("auth"), claims.get("origin"))


def _addresses(requested: tuple[str, ...], inherited: tuple[str, ...] | None) -> list[str] | None:
    """The networks that a JWT works from; None means everywhere, an empty list nowhere."""
    if inherited is None:
        return list(requested) or None
    if not requested:
        return list(inherited)
    return [str(network) for network in intersection(map(parse_network, requested), map(parse_network, inherited))]


def _issued_at(vouched: int, valid_from: int) -> int:
    """Never later than the database's moment: a clock that is ahead must not let a token survive what ends it. Nor
    than our own, by which it is judged. But what is issued after such an end is not void by it."""
    return max(min(vouched, int(time.time())), valid_from)


class Grants(Protocol):
    """Whoever keeps the grants of web sites."""

    async def is_alive(self, grant_id: str) -> bool: ...


def factor_digest(factor: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(factor.encode()).digest()).decode().rstrip("=")
