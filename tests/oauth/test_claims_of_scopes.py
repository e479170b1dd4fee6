"""The claims that the scopes allow, without a server."""

import json
from types import SimpleNamespace
from typing import Any

from sso.oauth.tokens.claims import (
    MAX_REPEATED_NICK,
    act_claim,
    id_token_claims,
    requested_claims,
    scope_claims,
    scopes_of_requested_claims,
    sign_in_claims,
)

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


REQUESTED = json.dumps(
    {
        "id_token": {"email": None, "name": ["Bob"], "nickname": ["Bob", "Ann"]},
        "userinfo": {"phone_verified": None, "locale": ["fr"]},
    }
)


def test_claims_that_are_requested_one_by_one() -> None:
    asking = user("openid", claims=REQUESTED)
    assert requested_claims(asking, "id_token") == {"email": "ann@example.com", "nickname": "Ann"}
    assert requested_claims(asking, "userinfo") == {}
    assert requested_claims(asking, "userinfo", phone_verified=True) == {"phone_verified": True}
    assert requested_claims(user("openid"), "id_token") == {}
    assert id_token_claims(asking) == {"email": "ann@example.com", "nickname": "Ann"}
    assert scopes_of_requested_claims(REQUESTED) == {"email", "profile", "trust"}
    assert scopes_of_requested_claims("") == frozenset()


def test_clients_that_act_for_a_user_are_nested() -> None:
    assert act_claim(()) == {}
    assert act_claim(("shop", "site")) == {"act": {"sub": "shop", "act": {"sub": "site"}}}
