"""The rules for a user JWT: its form, its signature and its claims."""

import base64
import hashlib

from sso.client.errors import PlayerRefused
from sso.client.player_guard import VerifiedPlayer
from sso.core.jwt import InvalidToken, WrongKey, algorithm_in_header, kid_of, signed_claims
from sso.core.keys import PublicKey
from sso.core.net import contains, parse_address, parse_network

ALGORITHMS = ("RS256", "ES256", "EdDSA")
USER_TYP = "user_token"


def read_kid(jwt: str) -> str:
    """Returns the id of the key of a JWT that is not verified yet."""
    try:
        kid = kid_of(jwt)
    except InvalidToken as error:
        raise PlayerRefused("malformed", str(error)) from None
    if algorithm_in_header(jwt) not in ALGORITHMS:
        raise PlayerRefused("signature", "the algorithm is none of the service")
    return kid


def check_jwt(
    jwt: str, key: PublicKey, issuer: str, now: float, factor: str | None = None, address: str | None = None
) -> VerifiedPlayer:
    """Returns the player of a JWT whose form ``read_kid`` has checked. Raises PlayerRefused."""
    try:
        claims = signed_claims(jwt, key)  # the algorithm is that of the key: a JWT cannot choose another one
    except WrongKey:
        raise PlayerRefused("signature", "the signature is wrong") from None
    except InvalidToken as error:
        raise PlayerRefused("malformed", str(error)) from None
    uid, exp = claims.get("uid"), claims.get("exp")
    ends = claims.get("ends", exp)
    is_user = claims.get("typ") == USER_TYP and isinstance(uid, str) and uid != ""
    if not is_user or type(exp) is not int or type(ends) is not int:
        raise PlayerRefused("malformed", "this is no user JWT")
    if claims.get("iss") != issuer:
        raise PlayerRefused("issuer", f"the JWT was not issued by {issuer}")
    if min(exp, ends) <= now:
        raise PlayerRefused("expired", "the JWT has expired")
    # The claim is no secret: the caller has the JWT. So a plain comparison is enough.
    if factor is not None and (not factor or claims.get("fac") != _digest(factor)):
        raise PlayerRefused("factor", "the JWT belongs to another device")
    if address is not None and "ips" in claims and not _is_within(claims["ips"], address):
        raise PlayerRefused("address", "the JWT belongs to other addresses")
    return VerifiedPlayer(str(uid), str(claims.get("auth", "")), str(claims.get("nick", "")), claims)


def _is_within(networks: object, address: str) -> bool:
    try:
        return isinstance(networks, list) and contains(map(parse_network, networks), parse_address(address))
    except ValueError:
        return False


def _digest(factor: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(factor.encode()).digest()).decode().rstrip("=")
