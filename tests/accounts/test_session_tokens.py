"""Session tokens: derived credentials keep the limits of a token and end with its sign-in."""

from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
import trio

from sso.accounts.authentication_context import GAME_AUTH, by_browser, by_password
from sso.accounts.errors import InvalidCredentials
from sso.accounts.model import LoginOptions
from sso.accounts.session_token_statements import MAX_SIGN_IN_TOKENS, MAX_USER_TOKENS
from sso.accounts.session_tokens import TokenSource
from sso.core.net import parse_address
from sso.db.statement import Statement
from sso.services import Services
from tests.kit.browser import new_user, query, user_id_of
from tests.kit.builders import add_user
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.server import Server
from tests.kit.session_tokens import LOGIN, claims_of, is_valid_token, new_application, renew, sign_in

HERE = parse_address("203.0.113.5")
DAY = 86400


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


def age_sign_ins(server: Server, seconds: int, login: str) -> None:
    """Moves the user's sign-ins into the past."""
    change = "UPDATE sign_ins SET created = created - make_interval(secs => $1) WHERE user_id = $2"
    query(server, change, float(seconds), user_id_of(server, login))


# Limits that derived credentials keep.


@pytest.mark.parametrize("kind", ["token", "stoken"])
def test_jwt_from_session_token_keeps_fixed_ips(client: httpx.Client, login: str, kind: str) -> None:
    data = sign_in(client, login, fixed_ips=["10.0.0.0/8"])
    derived = renew(client, data[kind])
    assert claims_of(derived)["ips"] == ["10.0.0.0/8"]
    assert claims_of(renew(client, derived["token"]))["ips"] == ["10.0.0.0/8"]
    assert claims_of(renew(client, derived["token"], fixed_ips=["10.1.0.0/16"]))["ips"] == ["10.1.0.0/16"]
    assert claims_of(renew(client, derived["token"], fixed_ips=["192.168.0.0/16"]))["ips"] == []


def test_token_from_login_by_token_with_fixed_ip_stays_restricted(client: httpx.Client, login: str) -> None:
    narrowed = renew(client, sign_in(client, login)["token"], fixed_ip="1")
    assert claims_of(renew(client, narrowed["token"]))["ips"] == ["127.0.0.1/32"]


def test_jwt_from_bound_token_works_only_from_its_address_and_ends_with_it(client: httpx.Client, login: str) -> None:
    bound = sign_in(client, login, short_token="1")
    claims = claims_of(renew(client, bound["token"]))
    assert claims["ips"] == ["127.0.0.1/32"]
    assert claims["exp"] - claims["iat"] <= 300
    assert claims["ends"] == claims["exp"]


def test_jwt_from_short_token_never_outlives_it(client: httpx.Client, server: Server, login: str) -> None:
    data = sign_in(client, login)
    remaining = "UPDATE session_tokens SET expires = now() + interval '100 seconds' WHERE user_id = $1"
    query(server, remaining, user_id_of(server, login))
    for kind in ("stoken", "token"):
        claims = claims_of(renew(client, data[kind]))
        assert claims["exp"] - claims["iat"] <= 100, kind
        assert claims["ends"] == claims["exp"]


def test_jwt_from_session_token_keeps_the_authentication_time(client: httpx.Client, server: Server, login: str) -> None:
    first = sign_in(client, login)
    age_sign_ins(server, 5 * DAY, login)
    derived = claims_of(renew(client, first["token"]))
    assert derived["auth_time"] == claims_of(first)["auth_time"] - 5 * DAY
    assert derived["auth"] == "token"


async def test_jwt_from_token_of_a_game_login_keeps_the_game_auth(services: Services) -> None:
    user = await add_user(services)
    options = LoginOptions(HERE, factor="d")
    issued = await services.session_tokens.issue(user, by_browser("login", 0), options)
    for _ in range(3):  # through renewals
        source = await services.session_tokens.sign_in(issued.token, HERE)
        data = await services.authentication_data.issue(source.signed_in, options, source)
        claims = claims_of(data)
        assert claims["auth"] == GAME_AUTH
        issued = await services.session_tokens.issue(user, source.signed_in.authentication, options, source)


# Applications.


def test_token_of_an_application_is_rejected_for_another(client: httpx.Client, server: Server, login: str) -> None:
    game, other = new_application(server), new_application(server)
    data = sign_in(client, login, app_id=game)
    assert claims_of(renew(client, data["token"]))["app_id"] == game
    assert claims_of(renew(client, data["token"], app_id=game))["app_id"] == game
    refused = client.post(LOGIN, json={"token": data["token"], "factor": "d", "app_id": other})
    assert refused.status_code == 403
    assert refused.json()["error"] == "token: belongs to another application"


def test_token_without_application_can_be_bound_to_any_application(
    client: httpx.Client, server: Server, login: str
) -> None:
    game, other = new_application(server), new_application(server)
    data = renew(client, sign_in(client, login)["token"], app_id=game)
    assert claims_of(data)["app_id"] == game
    assert client.post(LOGIN, json={"token": data["token"], "app_id": other}).status_code == 403


# The absolute lifetime.


def test_session_token_can_be_renewed_until_the_absolute_lifetime(
    client: httpx.Client, server: Server, login: str
) -> None:
    data = sign_in(client, login)
    age_sign_ins(server, 170 * DAY, login)
    data = renew(client, data["token"])
    assert 9 * DAY < data["token_exp"] <= 10 * DAY
    age_sign_ins(server, 10 * DAY, login)
    assert not is_valid_token(client, data["token"])
    assert not is_valid_token(client, data["stoken"])


async def renew_into(tokens: list[str], services: Services, source: TokenSource) -> None:
    with suppress(InvalidCredentials):
        user = source.signed_in.user
        tokens.append(
            (
                await services.session_tokens.issue(user, source.signed_in.authentication, LoginOptions(HERE), source)
            ).token
        )


async def test_token_cannot_be_renewed_while_its_sign_in_ends(services: Services) -> None:
    user = await add_user(services)
    options = LoginOptions(HERE, factor="d")
    for _ in range(10 if IS_LONG_RUN else 4):
        issued = await services.session_tokens.issue(user, by_password(), options)
        source = await services.session_tokens.sign_in(issued.token, HERE)
        renewed: list[str] = []
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(renew_into, renewed, services, source)
            nursery.start_soon(services.signed_in_games.end, user.user_id, [issued.sign_in_id])
        for token in renewed:
            with pytest.raises(InvalidCredentials):
                await services.session_tokens.sign_in(token, HERE)
        with pytest.raises(InvalidCredentials):
            await services.session_tokens.issue(user, source.signed_in.authentication, options, source)


# Number of tokens.

_COUNT = Statement("SELECT count(*) FROM session_tokens WHERE user_id = :user_id")


async def works(services: Services, token: str) -> bool:
    try:
        await services.session_tokens.sign_in(token, HERE)
    except InvalidCredentials:
        return False
    return True


async def test_oldest_session_tokens_of_a_user_end_beyond_the_limit(services: Services) -> None:
    user = await add_user(services)
    options = LoginOptions(HERE)
    issued = [
        await services.session_tokens.issue(user, by_password(), options) for _ in range(MAX_USER_TOKENS // 2 + 5)
    ]
    assert [await works(services, one.token) for one in issued] == [False] * 5 + [True] * (MAX_USER_TOKENS // 2)
    assert await services.database.value(_COUNT, user_id=user.user_id) <= MAX_USER_TOKENS


async def test_concurrent_sign_ins_do_not_exceed_the_token_limit(services: Services) -> None:
    user, other = await add_user(services), await add_user(services)
    options = LoginOptions(HERE)
    bystander = await services.session_tokens.issue(other, by_password(), options)
    tokens: list[str] = []

    async def sign_in_once() -> None:
        issued = await services.session_tokens.issue(user, by_password(), options)
        tokens.extend((issued.token, issued.stoken))

    async with trio.open_nursery() as nursery:
        for _ in range(MAX_USER_TOKENS):
            nursery.start_soon(sign_in_once)
    assert len(tokens) == 2 * MAX_USER_TOKENS
    assert sum([await works(services, token) for token in tokens]) <= MAX_USER_TOKENS
    assert await works(services, bystander.token)


async def test_sign_in_is_kept_until_no_jwt_of_it_is_accepted(services: Services) -> None:
    """A JWT that was renewed in the last moment has expired with the sign-in; services may use it for 30 days more."""
    user, options, kept_s = await add_user(services), LoginOptions(HERE), services.settings.token_max_s + 30 * DAY
    issued = await services.session_tokens.issue(user, by_password(), options)
    life = Statement("SELECT extract(epoch FROM expires - created) FROM sign_ins WHERE user_id = :user_id")
    assert await services.database.value(life, user_id=user.user_id) == kept_s
    source = await services.session_tokens.sign_in(issued.token, HERE)
    await services.session_tokens.issue(user, source.signed_in.authentication, options, source)
    assert await services.database.value(life, user_id=user.user_id) == kept_s


async def test_frequent_renewals_of_one_game_do_not_end_tokens_of_other_games(services: Services) -> None:
    user = await add_user(services)
    options = LoginOptions(HERE)
    quiet = await services.session_tokens.issue(user, by_password(), options)
    busy = await services.session_tokens.issue(user, by_password(), options)
    for _ in range(MAX_USER_TOKENS):  # always with the first token, like a program that does not store the new one
        source = await services.session_tokens.sign_in(busy.token, HERE)
        newest = await services.session_tokens.issue(user, source.signed_in.authentication, options, source)
    assert await works(services, quiet.token)
    assert await works(services, newest.token)
    assert await services.database.value(_COUNT, user_id=user.user_id) <= MAX_SIGN_IN_TOKENS + 2
