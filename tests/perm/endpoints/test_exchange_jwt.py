"""POST /proxy/oauth/exchangeJwt: a server renews a user's JWT with the access key of its application."""

from typing import Any

import httpx
import jwt as pyjwt
import pytest

from tests.perm.endpoints.conftest import FACTOR, Studio


def exchange(studio: Studio, key: str, **body: Any) -> httpx.Response:
    return studio.client.post("/proxy/oauth/exchangeJwt", json=body, headers={"Authorization": f"Bearer {key}"})


@pytest.fixture(scope="module")
def key(studio: Studio) -> dict[str, Any]:
    made: dict[str, Any] = studio.root.call(
        "accessKey", action="save", application_id=studio.application(), data={}
    ).data
    return made


def test_it_answers_a_jwt_for_the_keys_application(studio: Studio, key: dict[str, Any]) -> None:
    person = studio.person()
    answer = exchange(studio, key["hash"], jwt=person.jwt, factor=FACTOR)
    assert answer.status_code == 200
    assert answer.json().keys() == {"status", "jwt"}
    claims = pyjwt.decode(answer.json()["jwt"], options={"verify_signature": False})
    assert (claims["sub"], claims["app_id"], claims["typ"]) == (person.user_id, key["application_id"], "user_token")
    headers = {"Authorization": f"Bearer {answer.json()['jwt']}"}
    assert person.call("user/info", headers=headers).status == 200


def test_a_wrong_key_factor_or_token_is_401_in_the_envelope(studio: Studio, key: dict[str, Any]) -> None:
    person = studio.person()
    for secret, body in (
        ("x" * 43, {"jwt": person.jwt, "factor": FACTOR}),
        (person.jwt, {"jwt": person.jwt, "factor": FACTOR}),
        (key["hash"], {"jwt": person.jwt, "factor": "another device"}),
        (key["hash"], {"jwt": person.jwt[:-2], "factor": FACTOR}),
        (key["hash"], {"jwt": key["hash"], "factor": FACTOR}),
    ):
        answer = exchange(studio, secret, **body)
        assert answer.status_code == 401
        assert answer.json()["status"] == "ERROR"
        assert answer.json()["error"].startswith("invalid token")


def test_jwt_and_factor_are_required(studio: Studio, key: dict[str, Any]) -> None:
    assert exchange(studio, key["hash"], factor=FACTOR).status_code == 400
    assert exchange(studio, key["hash"], jwt=studio.person().jwt).status_code == 400


def test_nobody_gets_a_jwt_for_where_they_may_not_log_in(studio: Studio) -> None:
    closed = studio.application(login={"can": {"value": False}})
    key = studio.root.call("accessKey", action="save", application_id=closed, data={}).data
    answer = exchange(studio, key["hash"], jwt=studio.person().jwt, factor=FACTOR)
    assert (answer.status_code, answer.json()["error"]) == (403, "login not allowed")
