"""Invalid requests to the four endpoints get the error envelope with a 4xx status, never a 5xx."""

import random
from typing import Any

import httpx
import orjson
import pytest

from tests.kit.game import BASE, Game, public_text
from tests.kit.long_tests import IS_LONG_RUN, usual_part
from tests.kit.malformed_bodies import BODIES, PIECES
from tests.kit.rsa_keys import rsa_key

ENDPOINTS = ("getGsid", "getGsidResult", "closeGsid", "info")
FIELDS = (
    "gsid", "status", "factor", "public_key", "jwt_public_key", "distr", "app_id", "gapp_id", "nojwt", "service_jwt",
    "short_token", "fixed_ip", "fixed_ips[]", "fixed_ips", "meta", "with_email",
)  # fmt: skip
HEADER_VALUES = (
    b"", b"\xff\xfe", b"\xc3\xa9", b"a" * 9000, b"Location", b"Ip", b"Sign \xff", b"Location \xff", b"=", b",;",
)  # fmt: skip
HEADERS = ("Location", "Authorization", "Ip", "Signature", "Sign", "Request-Sign", "Public-Key", "X-Forwarded-For")


def assert_client_error(answer: httpx.Response, what: object = "") -> None:
    assert answer.status_code in (200, 400, 403, 413, 415), what
    if answer.status_code != 200:
        assert set(answer.json()) == {"status", "error"}, what
        assert answer.json()["status"] == "ERROR", what
        assert "Traceback" not in answer.text, what


@pytest.mark.parametrize("name", BODIES)
def test_invalid_body_is_4xx(game: Game, name: str) -> None:
    kind, content, _ = BODIES[name]
    for endpoint in usual_part(ENDPOINTS, 2, [*BODIES].index(name)):
        headers = [(b"Content-Type", kind.encode("latin1"))] if kind else []
        answer = game.http.post(f"{BASE}/{endpoint}", content=content, headers=headers)
        assert_client_error(answer, endpoint)
        assert answer.status_code != 200 or endpoint == "getGsid"


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000, b'{"gsid":' * 5000, b'{"a":' + b"9" * 5000 + b"}", b'{"gsid": NaN}', b'{"gsid": "\\ud800"}',
        b'{"gsid": "\\u0000"}', b'{"gsid": "x", "gsid": "y"}', b"null", b"true", b'"x"', b"{", b"\xff", b"{}{}",
    ],
)  # fmt: skip
def test_json_other_than_an_object_is_400(game: Game, content: bytes) -> None:
    for endpoint in ENDPOINTS:
        assert game.send(endpoint, content).status_code == 400


@pytest.mark.parametrize("name", HEADERS)
def test_malformed_headers_cause_no_server_error(game: Game, name: str) -> None:
    session = game.register(public_key=public_text(rsa_key()))
    session.close(headers={"Location": session.secret})
    for number, value in enumerate(HEADER_VALUES, HEADERS.index(name)):
        for endpoint in usual_part(ENDPOINTS, 2, number):
            body = orjson.dumps({"gsid": session.gsid, "status": "Error"})
            answer = game.http.post(f"{BASE}/{endpoint}", content=body, headers=[(name.encode(), value)])
            assert_client_error(answer, (endpoint, value))


def test_random_input_causes_no_server_error(game: Game) -> None:
    chance = random.Random(21)
    session = game.register()
    session.close()
    for number in range(300 if IS_LONG_RUN else 100):
        with_gsid = {"gsid": session.gsid, "status": "Success"} if chance.random() < 0.5 else {}
        body = orjson.dumps(
            {**with_gsid, **{chance.choice(FIELDS): value(chance) for _ in range(chance.randint(0, 3))}}
        )
        headers = [(name.encode(), b"".join(chance.choices(TEXTS, k=2))) for name in HEADERS if chance.random() < 0.1]
        endpoint = chance.choice(ENDPOINTS)
        query = chance.choice(["", "?Location=%ff", "?Location", "?Location=a&Location=b", "?%", "?a=b"])
        answer = game.http.post(f"{BASE}/{endpoint}{query}", content=body, headers=headers)
        assert_client_error(answer, (number, endpoint, query, headers, body))
        if number % 50 == 49:  # a new address before this one is blocked
            game.http.close()
            game = Game(game.server)
    game.http.close()
    assert not game.server.log_events("request.failed")


TEXTS = [piece for piece in PIECES if b"\x00" not in piece]


def value(chance: random.Random) -> Any:
    simple: tuple[Any, ...] = (
        None,
        True,
        0,
        -1,
        1.5,
        2**40,
        "",
        "0",
        "1",
        "x",
        "é🎮",
        "x" * 300,
        "10.0.0.1",
        "<b>",
        "{{7*7}}",
        [],
        {},
    )
    return chance.choice([*simple, [chance.choice(simple)], {"a": chance.choice(simple)}])
