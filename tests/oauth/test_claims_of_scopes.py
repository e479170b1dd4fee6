"""The claims that the scopes allow, without a server."""

from types import SimpleNamespace
from typing import Any

from sso.oauth.tokens.claims import MAX_REPEATED_NICK, id_token_claims, scope_claims, sign_in_claims

ALL = ("openid", "email", "profile")


def user(*scopes: str, **fields: Any) -> Any:
    usual = {
        "profile": "oidc",
        "user_id": "1000",
        "login": "ann@example.com",
        "nick": "Ann",
        "lang": "de",
        "email_verified": True,
        "updated_at": 5,
        "claims": None,
    }
    return SimpleNamespace(scopes=scopes, **usual | fields)


EMAIL = {"email": "ann@example.com", "email_verified": True}
PROFILE = {"preferred_username": "Ann", "updated_at": 5, "name": "Ann", "nickname": "Ann", "locale": "de"}


def test_each_scope_has_its_claims() -> None:
    assert scope_claims(user("openid")) == {}
    assert scope_claims(user("email")) == EMAIL
    assert scope_claims(user("profile")) == PROFILE
    assert scope_claims(user(*ALL)) == EMAIL | PROFILE


def test_strict_client_gets_the_claims_of_the_specification() -> None:
    assert scope_claims(user(*ALL, profile="strict")) == {"email": "ann@example.com", "nickname": "Ann"}


def test_claims_without_a_value_are_left_out() -> None:
    assert scope_claims(user("profile", nick="", lang="")) == {"preferred_username": "1000", "updated_at": 5}


def test_long_nickname_is_not_repeated_in_an_id_token() -> None:
    longest = user("profile", nick="x" * MAX_REPEATED_NICK)
    assert id_token_claims(longest) == scope_claims(longest)
    longer = user("profile", nick="x" * (MAX_REPEATED_NICK + 1))
    assert scope_claims(longer)["name"] == longer.nick
    assert id_token_claims(longer) == {"updated_at": 5, "nickname": longer.nick, "locale": "de"}
    assert id_token_claims(user("openid", nick="x" * 200)) == {}


def test_claims_of_a_sign_in() -> None:
    assert sign_in_claims("login", 7) == {"auth_time": 7, "acr": "urn:sso:acr:password", "amr": ["pwd"]}
    assert sign_in_claims("", 0) == {"acr": "urn:sso:acr:password"}
