"""POST /proxy/oauth/exchangeJwt: a server renews a user's JWT with the access key of its application."""

import time
from typing import Any

import httpx
import jwt as pyjwt
import pytest

from sso.accounts.session_token_statements import MAX_USER_SIGN_INS
from tests.kit.browser import fresh_browser, query
from tests.kit.builders import PASSWORD
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio
from tests.perm.endpoints.tokens import expired_jwt, user_jwt


def exchange(studio: Studio, key: str, **body: Any) -> httpx.Response:
    return studio.client.post("/proxy/oauth/exchangeJwt", json=body, headers={"Authorization": f"Bearer {key}"})


@pytest.fixture(scope="module")
def key(studio: Studio) -> dict[str, Any]:
    key: dict[str, Any] = studio.root.call(
        "accessKey", action="save", application_id=studio.application(), data={}
    ).data
    return key


@pytest.fixture(scope="module")
def user(studio: Studio) -> ApiUser:
    """A user whose login no test ends."""
    return studio.user()


def test_exchange_returns_a_jwt_for_the_application_of_the_key(
    studio: Studio, key: dict[str, Any], user: ApiUser
) -> None:
    response = exchange(studio, key["hash"], jwt=user.jwt, factor=FACTOR)
    assert response.status_code == 200
    assert response.json().keys() == {"status", "jwt"}
    claims = pyjwt.decode(response.json()["jwt"], options={"verify_signature": False})
    assert (claims["sub"], claims["app_id"], claims["typ"]) == (user.user_id, key["application_id"], "user_token")
    headers = {"Authorization": f"Bearer {response.json()['jwt']}"}
    assert user.call("user/info", headers=headers).status == 200


def test_exchange_with_a_wrong_key_factor_or_token_is_unauthorized(
    studio: Studio, key: dict[str, Any], user: ApiUser
) -> None:
    for secret, body in (
        ("x" * 43, {"jwt": user.jwt, "factor": FACTOR}),
        (user.jwt, {"jwt": user.jwt, "factor": FACTOR}),
        (key["hash"], {"jwt": user.jwt, "factor": "another device"}),
        (key["hash"], {"jwt": user.jwt[:-2], "factor": FACTOR}),
        (key["hash"], {"jwt": key["hash"], "factor": FACTOR}),
    ):
        response = exchange(studio, secret, **body)
        assert response.status_code == 401
        assert response.json()["status"] == "ERROR"
        assert response.json()["error"].startswith("invalid token")


def test_unauthorized_response_names_the_missing_or_wrong_credential(
    studio: Studio, key: dict[str, Any], user: ApiUser
) -> None:

    def reason(secret: str, jwt: str, factor: str = FACTOR) -> str:
        body = {"jwt": jwt, "factor": factor}
        response = studio.client.post("/proxy/oauth/exchangeJwt", json=body, headers={"Authorization": secret})
        assert response.status_code == 401
        return str(response.json()["error"]).removeprefix("invalid token")

    missing = ": an access key is required (Authorization: Bearer <access key>)"
    bearer = f"Bearer {key['hash']}"
    assert reason("Bearer", user.jwt) == reason(key["hash"], user.jwt) == missing
    assert reason("Bearer x", user.jwt) == reason(bearer, "a.b.c") == ""
    assert reason(bearer, user.jwt, "another") == ": factor is not the one that the JWT was issued for"
    assert reason(bearer, expired_jwt(studio.server, user.user_id, days=31)) == ": the JWT has expired"


def renewed(studio: Studio, key: dict[str, Any], jwt: str) -> dict[str, Any]:
    """The claims of the JWT that an exchange returns."""
    response = exchange(studio, key["hash"], jwt=jwt, factor=FACTOR)
    assert response.status_code == 200, response.text
    claims: dict[str, Any] = pyjwt.decode(response.json()["jwt"], options={"verify_signature": False})
    return claims


def test_exchange_of_a_jwt_of_another_application_is_forbidden(
    studio: Studio, key: dict[str, Any], user: ApiUser
) -> None:
    other = studio.application()
    of_other = user_jwt(studio.server, user.user_id, app_id=other)
    response = exchange(studio, key["hash"], jwt=of_other, factor=FACTOR)
    assert (response.status_code, response.json()["error"]) == (403, "jwt: belongs to another application")
    own = user_jwt(studio.server, user.user_id, app_id=key["application_id"])
    assert renewed(studio, key, own)["app_id"] == key["application_id"]
    strange = user_jwt(studio.server, user.user_id, app_id=str(key["application_id"]))
    assert exchange(studio, key["hash"], jwt=strange, factor=FACTOR).status_code == 403


def test_renewed_jwt_ends_within_the_maximum_time_since_login(
    studio: Studio, key: dict[str, Any], user: ApiUser
) -> None:
    now = int(time.time())
    longest = 15552000
    old = user_jwt(studio.server, user.user_id, auth_time=now - longest + 60)
    claims = renewed(studio, key, old)
    assert (claims["auth_time"], claims["exp"]) == (now - longest + 60, now + 60)
    older = user_jwt(studio.server, user.user_id, auth_time=now - longest - 1)
    response = exchange(studio, key["hash"], jwt=older, factor=FACTOR)
    assert (response.status_code, response.json()["error"]) == (401, "invalid token: the sign-in is too long ago")


def test_renewal_keeps_address_end_authentication_time_and_origin(
    studio: Studio, key: dict[str, Any], user: ApiUser
) -> None:
    now = int(time.time())
    limits: dict[str, Any] = {
        "auth_time": now - 500,
        "ends": now + 100,
        "ips": ["127.0.0.0/8"],
        "auth": "gsid",
    }
    first = renewed(studio, key, user_jwt(studio.server, user.user_id, **limits))
    second = renewed(studio, key, user_jwt(studio.server, user.user_id, **(first | {"kid": None})))
    for claims in (first, second):
        assert {name: claims[name] for name in limits} == limits
        assert claims["exp"] <= now + 100
    ended = user_jwt(studio.server, user.user_id, iat=now - 500, exp=now - 100, ends=now - 100)
    assert exchange(studio, key["hash"], jwt=ended, factor=FACTOR).status_code == 401


def test_jwt_without_authentication_time_counts_from_its_issue_time(
    studio: Studio, key: dict[str, Any], user: ApiUser
) -> None:
    old = expired_jwt(studio.server, user.user_id, days=2)
    issued = pyjwt.decode(old, options={"verify_signature": False})["iat"]
    assert renewed(studio, key, old)["auth_time"] == issued


def test_exchange_of_a_jwt_from_before_a_global_logout_is_unauthorized(studio: Studio, key: dict[str, Any]) -> None:
    user = studio.user()
    studio.server.sso("user", "end-sessions", user.user_id)
    assert exchange(studio, key["hash"], jwt=user.jwt, factor=FACTOR).status_code == 401


def test_exchange_of_a_jwt_of_an_ended_login_is_unauthorized(studio: Studio, key: dict[str, Any]) -> None:
    user = studio.user()
    first = exchange(studio, key["hash"], jwt=user.jwt, factor=FACTOR).json()["jwt"]
    query(studio.server, "UPDATE sign_ins SET ended = true WHERE user_id = $1", user.user_id)
    for token in (user.jwt, first):
        assert exchange(studio, key["hash"], jwt=token, factor=FACTOR).status_code == 401


def test_jwt_of_a_login_that_newer_ones_have_pushed_out_is_unauthorized(studio: Studio, key: dict[str, Any]) -> None:
    user = studio.user()
    first = exchange(studio, key["hash"], jwt=user.jwt, factor=FACTOR).json()["jwt"]
    newer = """INSERT INTO sign_ins (id, user_id, last_used, expires)
        SELECT 'newer ' || $1 || n, $1, now(), now() + interval '1 day' FROM generate_series(1, $2) n"""
    query(studio.server, newer, user.user_id, MAX_USER_SIGN_INS)
    credentials = {"login": user.login, "password": PASSWORD, "factor": FACTOR}
    newest = studio.client.post("/proxy/api/login", json=credentials).json()["jwt"]
    for token, status in ((user.jwt, 401), (first, 401), (newest, 200)):
        assert exchange(studio, key["hash"], jwt=token, factor=FACTOR).status_code == status
        headers, question = {"Authorization": f"Bearer {token}"}, {"action": "get", "data": {"type": "list"}}
        assert user.call("user/info", headers).status == status
        assert user.call("meta/data", headers, application_id=key["application_id"], **question).status == status


def test_exchange_requires_jwt_and_factor(studio: Studio, key: dict[str, Any], user: ApiUser) -> None:
    assert exchange(studio, key["hash"], factor=FACTOR).status_code == 400
    assert exchange(studio, key["hash"], jwt=user.jwt).status_code == 400


def test_exchange_is_forbidden_where_the_user_may_not_log_in(studio: Studio, user: ApiUser) -> None:
    closed = studio.application(login={"can": {"value": False}})
    key = studio.root.call("accessKey", action="save", application_id=closed, data={}).data
    response = exchange(studio, key["hash"], jwt=user.jwt, factor=FACTOR)
    assert (response.status_code, response.json()["error"]) == (403, "login not allowed")


def test_renewed_jwt_belongs_to_the_same_login_and_ends_with_it(studio: Studio, key: dict[str, Any]) -> None:
    user = studio.user()
    jwt = user.jwt
    sign_in = pyjwt.decode(jwt, options={"verify_signature": False})["sid"]
    assert renewed(studio, key, jwt)["sid"] == sign_in
    again = exchange(studio, key["hash"], jwt=jwt, factor=FACTOR).json()["jwt"]
    with fresh_browser(studio.server, user.login) as browser:
        browser.open_account()
        assert sign_in in browser.form("/account/games/end")["ids"].split()
        browser.submit("/account/games/end")
    for ended in (jwt, again):
        assert exchange(studio, key["hash"], jwt=ended, factor=FACTOR).status_code == 401
        headers = {"Authorization": f"Bearer {ended}"}
        assert user.call("user/info", headers=headers).status == 401
