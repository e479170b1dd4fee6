"""The claims about a user that the scopes allow, and those about the sign-in (OpenID Connect Core sections 2 and 5)."""

from collections.abc import Sequence
from typing import Any, Protocol

import orjson

from sso.accounts.authentication_context import acr_of, amr_of
from sso.oauth.clients.profiles import RULES

# The claims about a user that can be requested one by one, with the scopes that disclose them.
SCOPES_OF_CLAIMS = {
    "email": "email",
    "email_verified": "email",
    "name": "profile",
    "nickname": "profile",
    "preferred_username": "profile",
    "locale": "profile",
    "updated_at": "profile",
    "phone_verified": "trust",  # in userinfo only
}
MAX_REPEATED_NICK = 100  # characters of a nickname that an ID token repeats in `name` and `preferred_username`


class ClaimSource(Protocol):
    """What tokens and userinfo know about a user, and the client and the scopes that they are for."""

    @property
    def profile(self) -> str: ...
    @property
    def scopes(self) -> Sequence[str]: ...
    @property
    def user_id(self) -> str: ...
    @property
    def login(self) -> str: ...
    @property
    def nick(self) -> str: ...
    @property
    def lang(self) -> str: ...
    @property
    def email_verified(self) -> bool: ...
    @property
    def updated_at(self) -> int: ...
    @property
    def claims(self) -> str: ...


def scope_claims(user: ClaimSource) -> dict[str, Any]:
    """Returns the claims of the scopes email and profile. A strict client gets only the claims of §2.1."""
    is_standard = RULES[user.profile].is_standard
    claims: dict[str, Any] = {}
    if "email" in user.scopes:
        claims["email"] = user.login
        if is_standard:
            claims["email_verified"] = user.email_verified
    if "profile" in user.scopes:
        claims |= _profile_claims(user) if is_standard else {"nickname": user.nick}
    return claims


def id_token_claims(user: ClaimSource) -> dict[str, Any]:
    """Returns the claims of the scopes for an ID token.

    A long nickname is not repeated, so that every ID token is short enough for ``id_token_hint``. Userinfo has it all.
    """
    claims = scope_claims(user) | requested_claims(user, "id_token")
    if len(user.nick) > MAX_REPEATED_NICK:
        claims.pop("name", None)
        claims.pop("preferred_username", None)
    return claims


def scopes_of_requested_claims(*stored: str) -> frozenset[str]:
    """Returns the scopes that would disclose the claims that are requested one by one."""
    targets = [target for claims in stored if claims for target in orjson.loads(claims).values()]
    return frozenset(SCOPES_OF_CLAIMS[name] for names in targets for name in names)


def requested_claims(user: ClaimSource, target: str, **more: Any) -> dict[str, Any]:
    """Returns the claims that were requested one by one, unless they have other values. ``more`` are further ones."""
    if not user.claims:
        return {}
    requested = orjson.loads(user.claims)[target]
    known = {"email": user.login, "email_verified": user.email_verified, **_profile_claims(user), **more}
    return {
        name: known[name]
        for name, values in requested.items()
        if name in known and (values is None or known[name] in values)
    }


def _profile_claims(user: ClaimSource) -> dict[str, Any]:
    """A claim without a value is left out. The login is an e-mail address, which this scope does not disclose."""
    claims = {"preferred_username": user.nick or user.user_id, "updated_at": user.updated_at}
    if user.nick:
        claims |= {"name": user.nick, "nickname": user.nick}
    return claims | ({"locale": user.lang} if user.lang else {})


def sign_in_claims(auth: str, auth_time: int) -> dict[str, Any]:
    """Returns the claims about a sign-in. ``acr`` is always there, and one factor if nothing more is known.

    ``amr`` and ``auth_time`` are left out if nothing proves them; the argument ``auth_time`` is then 0.
    """
    methods = amr_of(auth)
    return {
        **({"auth_time": auth_time} if auth_time else {}),
        "acr": acr_of(auth),
        **({"amr": methods} if methods else {}),
    }


def act_claim(act: Sequence[str]) -> dict[str, Any]:
    """Returns the claim ``act`` (RFC 8693 section 4.1): the client that acts for the user, and those before it."""
    claim: dict[str, Any] = {}
    for client_id in reversed(act):
        claim = {"act": {"sub": client_id, **claim}}
    return claim
