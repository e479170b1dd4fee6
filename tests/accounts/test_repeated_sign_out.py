"""Signing out everywhere, several times within a second: it ends what was issued and does not delay new tokens."""

from typing import Any

import jwt as pyjwt
import pytest

from sso.accounts.authentication_context import by_password
from sso.accounts.model import LoginOptions, SignedIn, User
from sso.core.jwt import InvalidToken
from sso.core.net import parse_address
from sso.services import Services
from tests.kit.builders import add_user

HERE = parse_address("203.0.113.5")
TIMES = 20


async def sign_out(services: Services, user: User) -> User:
    await services.users.revoke_all_except(user.user_id, "")
    current = await services.users.get(user.user_id)
    assert current is not None
    return current


async def sign_in(services: Services, user: User) -> dict[str, Any]:
    options = LoginOptions(HERE, factor="device")
    return await services.authentication_data.issue(SignedIn(user, by_password()), options)


async def test_new_jwt_is_valid_now(services: Services) -> None:
    user = await add_user(services)
    for _ in range(TIMES):
        user = await sign_out(services, user)
    jwt = (await sign_in(services, user))["jwt"]
    claims, now = pyjwt.decode(jwt, options={"verify_signature": False}), services.database.clock.now()
    assert claims["iat"] <= now
    assert claims["exp"] <= now + services.settings.jwt_ttl_s
    assert (await services.user_jwts.verify(jwt, HERE, factor="device")).user == user


async def test_tokens_of_the_same_second_end(services: Services) -> None:
    user = await add_user(services)
    for _ in range(5):
        data = await sign_in(services, user)
        source = await services.session_tokens.sign_in(data["token"], HERE)
        assert source.signed_in.user == user
        user = await sign_out(services, user)
        with pytest.raises(InvalidToken):
            await services.user_jwts.verify(data["jwt"], HERE, factor="device")


async def test_jwt_of_a_sign_in_that_was_ended_before_stays_void(services: Services) -> None:
    """The JWT is renewed from a token of the sign-in; the sign-in ends first, and everything else afterwards."""
    user = await sign_out(services, await add_user(services))
    data = await sign_in(services, user)
    claims = pyjwt.decode(data["jwt"], options={"verify_signature": False})
    await services.signed_in_games.end(user.user_id, [claims["sid"]])
    await sign_out(services, user)
    with pytest.raises(InvalidToken):
        await services.user_jwts.verify(data["jwt"], HERE, factor="device")
