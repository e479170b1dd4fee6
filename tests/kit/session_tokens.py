"""Session tokens of a program, and the sign-ins of games that they give."""

import itertools
from typing import Any

import httpx
import jwt as pyjwt

from tests.kit.builders import PASSWORD
from tests.kit.server import Server

LOGIN = "/proxy/api/login"


INFO = "/api/permissions/user/info"


_application_ids = itertools.count(700_000)


def new_application(server: Server, **fields: Any) -> int:
    application_id = next(_application_ids)
    server.apply({"applications": [{"application_id": application_id, "name": f"Game {application_id}", **fields}]})
    return application_id


def claims_of(data: dict[str, Any]) -> dict[str, Any]:
    claims: dict[str, Any] = pyjwt.decode(data["jwt"], options={"verify_signature": False})
    return claims


def sign_in(client: httpx.Client, login: str, **fields: Any) -> dict[str, Any]:
    answer = client.post(LOGIN, json={"login": login, "password": PASSWORD, "factor": "d", **fields})
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()
    return data


def renew(client: httpx.Client, token: str, **fields: Any) -> dict[str, Any]:
    answer = client.post(LOGIN, json={"token": token, "factor": "d", **fields})
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()
    return data


def is_valid_token(client: httpx.Client, token: str) -> bool:
    return client.post(LOGIN, json={"token": token}).status_code == 200


def is_valid_jwt(client: httpx.Client, jwt: str) -> bool:
    headers = {"Authorization": f"Bearer {jwt}", "Factor": "d"}
    return client.post(INFO, json={}, headers=headers).status_code == 200
