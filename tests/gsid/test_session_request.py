"""Evidence of requests: address, Location and signature in all their places; invalid evidence is a violation.

A closed session answers a poll at once, so that a violation differs from a result without waiting.
"""

import base64

import httpx
import orjson
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from tests.kit.game import BASE, Game, Session, outcome, public_text, sign, violation
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

OVER = ("ERROR", "session closed")
ELSEWHERE = "203.0.113.9"


def closed(game: Game, **fields: str) -> Session:
    session = game.register(**fields)
    assert session.close(headers={"Location": session.secret}).status_code == 200
    return session


def seen_by(session: Session, game: Game) -> Session:
    """Returns the same session as used by another game."""
    return Session(game, session.gsid, session.match, session.location)


def assert_accepted(session: Session, headers: dict[str, str] | None = None, **options: dict[str, str]) -> None:
    assert outcome(session.poll(headers, **options)) == OVER
    closing = session.close(headers=headers, **options)
    assert (closing.status_code, closing.json()) == (200, {"status": "OK", "gsid": session.gsid})


def assert_refused(session: Session, headers: dict[str, str] | None = None, **options: dict[str, str]) -> None:
    before = session.row("state, ends")
    violation(session.poll(headers, **options))
    violation(session.close("Error", headers, **options))
    assert session.row("state, ends") == before


def test_registering_address_suffices(game: Game, other: Game) -> None:
    session = closed(game)
    assert_accepted(session)
    assert_refused(seen_by(session, other))


def test_location_suffices_in_any_place(game: Game, other: Game) -> None:
    session = seen_by(closed(game), other)
    for location in (session.secret, session.location):
        assert_accepted(session, params={"Location": location})
        assert_accepted(session, {"Location": location})
        assert_accepted(session, {"Authorization": f"Location {location}"})
        assert_accepted(session, {"Authorization": f"location  {location}"})
    body = orjson.dumps({"gsid": session.gsid})
    assert outcome(other.http.post(session.location, content=body)) == OVER  # the URL of the Location header as it is
    raw = f"{BASE}/getGsidResult?Location={session.location}"  # not percent-encoded, as some clients send it
    assert outcome(other.http.post(raw, content=body)) == OVER


def test_wrong_location_is_a_violation_even_from_the_registering_address(game: Game) -> None:
    session, another = closed(game), closed(game)
    for location in ("", "x", session.secret[:-1], session.secret + "x", another.secret, "é", session.gsid, "*", "%00"):
        assert_refused(session, params={"Location": location})
        assert_refused(session, {"Authorization": f"Location {location}".strip()})
    assert_refused(session, {"Location": another.location})


def test_authorization_with_another_scheme_is_ignored(game: Game, other: Game) -> None:
    session = closed(game)
    assert_accepted(session, {"Authorization": "Bearer x"})
    assert_refused(seen_by(session, other), {"Authorization": f"Bearer {session.secret}"})


@pytest.mark.parametrize("place", ["Request-Sign: {}", "Sign: {}", "Authorization: Sign {}", "Authorization: sign {}"])
def test_signature_suffices_from_any_address(game: Game, other: Game, place: str) -> None:
    def header(made: str) -> dict[str, str]:
        name, _, value = place.partition(": ")
        return {name: value.format(made)}

    session = closed(game, public_key=public_text(rsa_key()))
    body = orjson.dumps({"gsid": session.gsid})
    assert outcome(other.send("getGsidResult", body, header(sign(rsa_key(), body)))) == OVER
    violation(other.send("getGsidResult", body, header(sign(rsa_key(1), body))))
    body = orjson.dumps({"gsid": session.gsid, "status": "Error"})
    assert other.send("closeGsid", body, header(sign(rsa_key(), body))).status_code == 200
    violation(other.send("closeGsid", body, header(sign(rsa_key(1), body))))


def test_location_suffices_for_a_session_with_a_key_and_the_address_does_not(game: Game) -> None:
    session = closed(game, public_key=public_text(rsa_key()))
    assert_refused(session)
    assert_refused(session, {"Public-Key": public_text(rsa_key())})
    assert_accepted(session, {"Location": session.secret})


def test_signature_covers_the_exact_bytes_of_the_body(game: Game) -> None:
    session = game.register(public_key=public_text(rsa_key()))
    key, body = rsa_key(), b'{"gsid": "%s", "status": "Error"}' % session.gsid.encode()
    digest = hashes.Hash(hashes.SHA256())
    digest.update(body)
    hashed = digest.finalize()
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.MAX_LENGTH)
    good = key.sign(body, padding.PKCS1v15(), hashes.SHA256())
    numbers = key.private_numbers()
    raw = pow(int.from_bytes(hashed, "big"), numbers.d, numbers.public_numbers.n).to_bytes(256, "big")
    text = base64.b64encode(good).decode()
    for name, made in {
        "another key": rsa_key(1).sign(body, padding.PKCS1v15(), hashes.SHA256()),
        "another body": key.sign(body[:-1], padding.PKCS1v15(), hashes.SHA256()),
        "the same JSON, written otherwise": base64.b64decode(sign(key, orjson.dumps(orjson.loads(body)))),
        "nothing": key.sign(b"", padding.PKCS1v15(), hashes.SHA256()),
        "the gsid": key.sign(session.gsid.encode(), padding.PKCS1v15(), hashes.SHA256()),
        "SHA-1": key.sign(body, padding.PKCS1v15(), hashes.SHA1()),
        "SHA-512": key.sign(body, padding.PKCS1v15(), hashes.SHA512()),
        "twice hashed": key.sign(hashed, padding.PKCS1v15(), hashes.SHA256()),
        "PSS": key.sign(body, pss, hashes.SHA256()),
        "raw RSA": raw,
        "truncated": good[:-1],
        "one and more": good + b"\x00",
        "zeros": bytes(256),
        "none": b"",
    }.items():  # fmt: skip
        answer = game.send("closeGsid", body, {"Request-Sign": base64.b64encode(made).decode()})
        assert violation(answer), name
    for bad in (
        text[:-2], text.replace("=", ""), f"{text[:9]} {text[9:]}", f"{text[:9]}\t{text[9:]}", f"{text}!", f"x{text}",
        good.hex(), base64.urlsafe_b64encode(good + b"\xff\xff\xff").decode(), f"{text},{text}", "é", "=",
    ):  # fmt: skip
        violation(game.send("closeGsid", body, {"Request-Sign": bad}))
    assert session.row("state")["state"] == ""
    again = base64.b64encode(key.sign(hashed, padding.PKCS1v15(), Prehashed(hashes.SHA256()))).decode()
    assert again == text
    assert game.send("closeGsid", body, {"Request-Sign": text}).status_code == 200


def test_signature_of_a_form_covers_its_bytes(game: Game, other: Game) -> None:
    session = game.register(public_key=public_text(rsa_key()))
    body = f"gsid={session.gsid}&status=Success".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Request-Sign": sign(rsa_key(), body)}
    assert other.send("closeGsid", body, headers).status_code == 200


def test_signature_without_a_registered_key_is_a_violation(game: Game) -> None:
    session = closed(game)
    body = orjson.dumps({"gsid": session.gsid})
    violation(game.send("getGsidResult", body, {"Request-Sign": sign(rsa_key(), body)}))
    both = {"Request-Sign": sign(rsa_key(), body), "Public-Key": public_text(rsa_key())}
    violation(game.send("getGsidResult", body, both))


def test_invalid_evidence_beside_valid_evidence_is_a_violation(game: Game) -> None:
    session = closed(game, public_key=public_text(rsa_key()))
    body = orjson.dumps({"gsid": session.gsid})
    good, bad = {"Request-Sign": sign(rsa_key(), body)}, {"Request-Sign": sign(rsa_key(1), body)}
    assert outcome(game.send("getGsidResult", body, good)) == OVER
    for wrong in (
        bad,
        {"Location": "x"},
        {"Public-Key": public_text(rsa_key(1))},
        {"Public-Key": "x"},
        {"Ip": ELSEWHERE},
    ):
        violation(game.send("getGsidResult", body, good | wrong))
        violation(game.send("getGsidResult", body, {"Location": session.secret} | wrong))
    violation(game.send("getGsidResult", body, {"Location": session.secret, "Authorization": "Sign x"}))


def test_key_of_a_later_request_must_be_the_registered_one(game: Game) -> None:
    session = closed(game, public_key=public_text(rsa_key()))
    for spelled in (
        public_text(rsa_key()),
        base64.b64encode(base64.b64decode(public_text(rsa_key()))).decode(),
    ):
        body = orjson.dumps({"gsid": session.gsid, "public_key": spelled})
        signed = {"Request-Sign": sign(rsa_key(), body)}
        assert outcome(game.send("getGsidResult", body, signed)) == OVER
    for text in (public_text(rsa_key(1)), "garbage"):
        body = orjson.dumps({"gsid": session.gsid, "public_key": text})
        violation(game.send("getGsidResult", body, {"Request-Sign": sign(rsa_key(), body)}))
    assert_refused(closed(game), {"Public-Key": public_text(rsa_key())})


@pytest.mark.parametrize("what", ["getGsidResult", "closeGsid", "info"])
def test_unknown_or_malformed_gsid_is_a_violation(game: Game, server: Server, what: str) -> None:
    session = game.register()
    with Game(server, "127.0.0.1") as local:
        for gsid in (
            "", "x", "9b2d1c3a-0000-4000-8000-000000000000", session.gsid.upper(), f" {session.gsid}",
            f"{session.gsid}\n", session.gsid.replace("-", ""), f"{{{session.gsid}}}", "../x",
            "' OR 1=1 --", "é🎮", "%", "x" * 10_000,
        ):  # fmt: skip
            violation((local if what == "info" else game).ask(what, gsid, status="Success"))


@pytest.mark.parametrize("what", ["getGsidResult", "closeGsid", "info"])
def test_gsid_that_is_not_a_string_is_400(game: Game, what: str) -> None:
    for body in (b"{}", b"", b"[]", b"x", b'{"gsid": null}', b'{"gsid": 1}', b'{"gsid": ["x"]}', b'{"gsid": {}}'):
        answer: httpx.Response = game.send(what, body)
        assert answer.status_code == 400, body
        assert answer.json()["status"] == "ERROR"


@pytest.mark.parametrize(
    "name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP", "Client-IP", "X-Client-IP"]
)
def test_forwarding_headers_of_an_untrusted_peer_are_ignored(game: Game, other: Game, name: str) -> None:
    session = closed(game)
    value = f"for={game.address}" if name == "Forwarded" else game.address
    assert_refused(seen_by(session, other), {name: value})
    assert other.register({name: value}).row("address")["address"] == other.address


def test_unsigned_ip_header_is_a_violation_unless_it_is_the_real_address(game: Game, other: Game) -> None:
    session = closed(game)
    for header in ({"Ip": game.address}, {"Authorization": f"Ip {game.address}"}, {"Ip": f"::ffff:{game.address}"}):
        assert_accepted(session, header)
        assert_refused(seen_by(session, other), header)
    for claimed in (ELSEWHERE, "", "x", f"{game.address}, {game.address}", "127.77.1"):
        assert_refused(session, {"Ip": claimed})
        assert_refused(session, {"Location": session.secret, "Ip": claimed})
    assert_refused(session, {"Ip": game.address, "Authorization": f"Ip {ELSEWHERE}"})
    violation(game.get_gsid({"Ip": ELSEWHERE}))
    assert game.get_gsid({"Ip": game.address}).status_code == 200
