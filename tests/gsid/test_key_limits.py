"""Limits of game keys, and at most one piece of evidence of each kind in a request."""

import base64
from collections.abc import Iterator

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.kit.browser import query
from tests.kit.game import BASE, Game, Session, outcome, public_text, sign, violation, violation_log
from tests.kit.key_encodings import b64, diffie_hellman_der, rsa_der
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

MODULUS = rsa_key(0, 3072).public_key().public_numbers().n
LARGE_EXPONENT = rsa.RSAPublicNumbers((1 << 3069) - 1, MODULUS).public_key()
LARGE_EXPONENT_DER = LARGE_EXPONENT.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
REFUSED_KEYS = {
    "an exponent of 3069 bits": (b64(LARGE_EXPONENT_DER), "odd exponent from 3 to 4294967295"),
    "an exponent of 33 bits": (b64(rsa_der(MODULUS, 2**32 + 1)), "odd exponent from 3 to 4294967295"),
    "an exponent of 1": (b64(rsa_der(MODULUS, 1)), "expected a public key"),
    "an even exponent": (b64(rsa_der(MODULUS, 65536)), "expected a public key"),
    "8193 bits": (b64(rsa_der(1 << 8192 | 1, 65537)), "2048 to 8192 bits"),
    "2047 bits": (b64(rsa_der(1 << 2046 | 1, 65537)), "2048 to 8192 bits"),
    "a Diffie-Hellman key": (b64(diffie_hellman_der(7000)), "RSA, EC P-256 or Ed25519"),
}


@pytest.fixture
def player(server: Server) -> Iterator[Game]:
    with Game(server) as player:
        yield player


def sessions_of(game: Game) -> int:
    rows = query(game.server, "SELECT count(*) FROM game_sessions WHERE address = $1", game.address)
    return int(rows[0]["count"])


@pytest.mark.parametrize("name", REFUSED_KEYS)
def test_get_gsid_refuses_a_key_outside_the_limits_and_stores_nothing(player: Game, name: str) -> None:
    key, expected = REFUSED_KEYS[name]
    for field in ("public_key", "jwt_public_key"):
        answer = player.get_gsid(**{field: key})
        assert answer.status_code == 400, (field, answer.text)
        assert answer.json()["error"].startswith(f"{field}: ")
        assert expected in answer.json()["error"]
    assert player.get_gsid({"Public-Key": key}).status_code == 400
    assert sessions_of(player) == 0


def test_login_refuses_a_jwt_public_key_with_a_large_exponent(player: Game) -> None:
    body = {"login": "x", "password": "x", "factor": "x", "jwt_public_key": b64(LARGE_EXPONENT_DER)}
    answer = player.http.post("/proxy/api/login", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("jwt_public_key: an RSA key must have an odd exponent")


@pytest.mark.parametrize(("bits", "exponent"), [(2048, 3), (8192, 2**32 - 1), (8192, 65537)])
def test_get_gsid_accepts_keys_at_the_limits(player: Game, bits: int, exponent: int) -> None:
    key = b64(rsa_der(1 << (bits - 1) | 1, exponent))
    session = player.register(public_key=key)
    body = orjson.dumps({"gsid": session.gsid, "status": "Error"})
    wrong = base64.b64encode(bytes(bits // 8)).decode()
    record = violation(player.send("closeGsid", body, {"Request-Sign": wrong}))
    assert [entry["reason"] for entry in violation_log(player.server, record)] == ["wrong signature"]


@pytest.mark.parametrize("bits", [2048, 4096, 4104])
def test_signature_is_verified_on_the_event_loop_or_in_a_thread(player: Game, bits: int) -> None:
    """Keys of more than 4,096 bits are verified in a thread."""
    key = rsa_key(7, bits)
    session = player.register(public_key=public_text(key))
    body = orjson.dumps({"gsid": session.gsid, "status": "Error"})
    good = sign(key, body)
    violation(player.send("closeGsid", body + b" ", {"Request-Sign": good}))
    assert player.send("closeGsid", body, {"Request-Sign": good}).status_code == 200


def test_registered_key_outside_the_limits_verifies_nothing(player: Game) -> None:
    """A session registered by an older version may have such a key."""
    session = player.register(public_key=public_text(rsa_key()))
    query(player.server, "UPDATE game_sessions SET public_key = $2 WHERE gsid = $1", session.gsid, LARGE_EXPONENT_DER)
    body = orjson.dumps({"gsid": session.gsid})
    record = violation(player.send("getGsidResult", body, {"Request-Sign": sign(rsa_key(0, 3072), body)}))
    assert [entry["reason"] for entry in violation_log(player.server, record)] == ["the registered key is unusable"]


def closed(game: Game) -> Session:
    session = game.register(public_key=public_text(rsa_key()))
    assert session.close(headers={"Location": session.secret}).status_code == 200
    return session


def places(session: Session, body: bytes) -> dict[str, list[tuple[str, str, str]]]:
    """The places of each kind of evidence: a header and its value, or a parameter of the URL."""
    signature = sign(rsa_key(), body)
    return {
        "Request-Sign": [
            ("header", "Request-Sign", signature),
            ("header", "Sign", signature),
            ("header", "Authorization", f"Sign {signature}"),
        ],
        "Location": [
            ("header", "Location", session.secret),
            ("header", "Authorization", f"Location {session.secret}"),
            ("query", "Location", session.secret),
        ],
        "public_key": [("header", "Public-Key", public_text(rsa_key()))],
    }


def send(session: Session, what: str, body: bytes, *chosen: tuple[str, str, str]) -> tuple[int, str]:
    headers = [
        ("Content-Type", "application/json"),
        *((name, text) for place, name, text in chosen if place == "header"),
    ]
    params = {"Location": [text for place, _, text in chosen if place == "query"]}
    answer = session.game.http.post(f"{BASE}/{what}", content=body, headers=headers, params=params)
    return answer.status_code, str(answer.json().get("error"))


@pytest.mark.parametrize("what", ["getGsidResult", "closeGsid"])
@pytest.mark.parametrize("kind", ["Request-Sign", "Location"])
def test_repeated_evidence_of_one_kind_is_refused(player: Game, kind: str, what: str) -> None:
    """Each piece is valid, but more than one of a kind is refused before the session is read."""
    session = closed(player)
    body = orjson.dumps({"gsid": session.gsid, "status": "Success"})
    found = places(session, body)[kind]
    for place in found:
        assert send(session, what, body, place)[0] == 200
    for first in found:
        for second in found:
            if first[1] == second[1] == "Authorization":
                continue  # two Authorization headers are refused in general
            assert_refused(send(session, what, body, first, second), kind)
    assert_refused(send(session, what, body, *found[:1] * 50), kind)


def assert_refused(answer: tuple[int, str], kind: str) -> None:
    """The evidence is in two places, or in two headers of one name."""
    status, error = answer
    assert status == 400
    assert error == f"{kind}: expected at most one, in one place" or error.endswith(
        ": expected one header, got several"
    )


def test_repeated_public_key_is_refused(player: Game) -> None:
    session = closed(player)
    key = ("header", "Public-Key", public_text(rsa_key()))
    body = orjson.dumps({"gsid": session.gsid})
    signed = places(session, body)["Request-Sign"][0]
    assert send(session, "getGsidResult", body, signed, key)[0] == 200
    assert_refused(send(session, "getGsidResult", body, signed, key, key), "public_key")
    assert_refused(send(session, "getGsid", body, key, key), "public_key")
    body = orjson.dumps({"gsid": session.gsid, "public_key": public_text(rsa_key())})
    signed = places(session, body)["Request-Sign"][0]
    assert send(session, "getGsidResult", body, signed)[0] == 200
    assert_refused(send(session, "getGsidResult", body, signed, key), "public_key")
    before = sessions_of(player)
    assert_refused(send(session, "getGsid", body, key), "public_key")
    assert sessions_of(player) == before


def test_one_piece_of_each_kind_is_accepted(player: Game) -> None:
    session = closed(player)
    body = orjson.dumps({"gsid": session.gsid})
    found = places(session, body)
    assert send(session, "getGsidResult", body, *(kind[0] for kind in found.values()))[0] == 200
    assert outcome(session.poll({"Location": session.secret})) == ("ERROR", "session closed")


def test_repeated_signature_of_an_address_is_refused(player: Game) -> None:
    session = closed(player)
    body = orjson.dumps({"gsid": session.gsid})
    twice = [("header", "Signature", f"{letter}:1:{letter * 64}") for letter in "ab"]
    assert_refused(send(session, "getGsidResult", body, *twice), "Signature")
