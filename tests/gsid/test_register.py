"""getGsid: every field, in JSON and as a form; an invalid request is refused and registers nothing."""

import base64
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from sso.core.keys import UnusableKey, load_rsa_public, public_der
from tests.kit.browser import query
from tests.kit.game import BASE, Game, public_text
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
WORDS = re.compile(r"[a-z]{3,8} [a-z]{3,8}")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def refused(game: Game, headers: dict[str, str] | None = None, /, **fields: Any) -> str:
    """Asserts that the request is refused with 400 and returns the error text."""
    answer = game.get_gsid(headers, **fields)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()) == {"status", "error"}
    assert answer.json()["status"] == "ERROR"
    assert "Location" not in answer.headers
    return str(answer.json()["error"])


@pytest.fixture(autouse=True)
def refused_requests_register_nothing(game: Game) -> Iterator[None]:
    """After each test, the address has as many sessions as it got OK responses."""
    answers: list[int] = []
    game.http.event_hooks["response"].append(lambda answer: answers.append(answer.status_code))
    yield
    rows = query(game.server, "SELECT count(*) FROM game_sessions WHERE address = $1", game.address)
    assert rows[0]["count"] == answers.count(200)


def test_response_has_exactly_the_specified_fields(game: Game) -> None:
    answer = game.get_gsid()
    data = answer.json()
    assert answer.status_code == 200
    assert set(data) == {"status", "gsid", "ts", "started", "expires_in", "match"}
    assert data["status"] == "OK"
    assert UUID4.fullmatch(data["gsid"])
    assert WORDS.fullmatch(data["match"])
    assert data["expires_in"] == 120
    assert type(data["ts"]) is type(data["started"]) is type(data["expires_in"]) is int
    assert abs(data["ts"] - time.time()) < 60
    assert data["ts"] == data["started"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_location_header_has_a_secret_that_is_stored_as_a_digest(game: Game) -> None:
    session = game.register()
    assert session.location == f"{game.server.base_url}{BASE}/getGsidResult?Location={session.secret}"
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", session.secret)
    assert session.secret not in str(dict(session.row()))
    assert game.register().secret != session.secret


def test_empty_body_takes_every_default(game: Game) -> None:
    for body, headers in ((b"", {}), (b"{}", {}), (b"", FORM)):
        answer = game.send("getGsid", body, headers)
        row = query(game.server, "SELECT * FROM game_sessions WHERE gsid = $1", answer.json()["gsid"])[0]
        assert (row["address"], row["public_key"], row["distr"], row["factor"]) == (game.address, None, "", "")
        assert (row["app_id"], row["gapp_id"], row["jwt_public_key"], row["fixed_ips"]) == (0, 0, "", [])
        assert not any(row[name] for name in ("nojwt", "short_token", "with_meta", "with_email"))


ALL: dict[str, Any] = {
    "factor": "device é", "distr": "steam", "app_id": 10, "gapp_id": 11, "nojwt": "1", "short_token": "1",
    "fixed_ip": "1", "fixed_ips[]": ["10.1.2.3", "192.168.0.0/24"], "meta": "1", "with_email": "wrong",
}  # fmt: skip


@pytest.mark.parametrize("as_form", [False, True])
def test_json_and_form_are_equivalent(game: Game, as_form: bool) -> None:
    key = public_text(rsa_key())
    fields = ALL | {"public_key": key, "jwt_public_key": key}
    url = f"{BASE}/getGsid"
    answer = game.http.post(url, data=fields) if as_form else game.http.post(url, json=fields)
    row = query(game.server, "SELECT * FROM game_sessions WHERE gsid = $1", answer.json()["gsid"])[0]
    assert (row["factor"], row["distr"], row["app_id"], row["gapp_id"]) == ("device é", "steam", 10, 11)
    assert row["fixed_ips"] == [f"{game.address}/32", "10.1.2.3/32", "192.168.0.0/24"]
    assert all(row[name] for name in ("nojwt", "short_token", "with_meta"))
    assert row["with_email"] is False
    assert row["public_key"] == public_der(rsa_key().public_key())
    assert row["jwt_public_key"] == key


def test_unknown_fields_are_ignored(game: Game) -> None:
    assert game.get_gsid(gsid="x", user_id="1001", status="confirmed", é=[{}]).status_code == 200
    row = query(game.server, "SELECT status, user_id FROM game_sessions WHERE address = $1", game.address)[0]
    assert tuple(row) == ("pending", None)


EMPTY: tuple[Any, ...] = ([], {})
TEXTS = ("factor", "distr", "public_key", "jwt_public_key", "service_jwt", "with_email")
FLAGS = ("nojwt", "short_token", "fixed_ip", "meta")


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_too_long_or_no_string_is_refused(game: Game, name: str) -> None:
    for value in (None, 1, True, 1.5, *EMPTY, ["x"], "x" * 5000):
        assert refused(game, **{name: value}).startswith(f"{name}: must be "), value


@pytest.mark.parametrize("name", FLAGS)
def test_flag_other_than_0_or_1_is_refused(game: Game, name: str) -> None:
    for value in (None, 1, True, 1.5, *EMPTY, ["1"], "true", "2", "", " 1", "1 ", "١"):
        assert refused(game, **{name: value}) == f'{name}: must be "0" or "1"', value


@pytest.mark.parametrize("name", ["app_id", "gapp_id"])
def test_unknown_application_is_refused(game: Game, name: str) -> None:
    for value in (None, -1, 2**31, 2**63 - 1, 1.5, True, *EMPTY, [10], "", "-1", "1.5", "٣", "0x1", 999):
        assert refused(game, **{name: value}).startswith(f"{name}: "), value


def test_integer_beyond_64_bits_is_refused(game: Game) -> None:
    assert game.send("getGsid", b'{"app_id": 9223372036854775808}').status_code == 400


def test_removed_application_is_refused(game: Game) -> None:
    query(game.server, "UPDATE applications SET removed = true WHERE application_id = 19")
    assert "app_id: " in refused(game, app_id=19)


def test_application_0_means_none_and_a_decimal_string_is_accepted(game: Game) -> None:
    assert game.register(app_id=0, gapp_id=0).row()["app_id"] == 0
    assert game.register(app_id="10").row()["app_id"] == 10


NOT_PRIVATE = (
    "0.0.0.0/0", "8.8.8.8", "10.0.0.0/7", "172.16.0.0/11", "192.168.0.0/15", "::/0", "::ffff:8.8.8.8", "0.0.0.0",
    "127.0.0.1", "169.254.0.0/16", "240.0.0.0/4", "192.0.2.0/24", "100.64.0.0/10", "fe80::1", "::1", "fc00::/6",
)  # fmt: skip
NO_NETWORK = (
    "", " ", "x", "10.0.0.1/33", "10.0.0.1/-1", "010.0.0.1", "10.0.1", "167772161", "fe80::1%eth0",
    "10.0.0.0/255.0.0.0",
    "10.0.0.1/", "/8", "10.0.0.1 ", "fc00::/129", "10.0.0.0/08", "١٠.0.0.1", "0x0a.0.0.1",
)  # fmt: skip


def test_fixed_ips_outside_private_networks_are_refused(game: Game) -> None:
    for text in (*NOT_PRIVATE, *NO_NETWORK):
        assert refused(game, **{"fixed_ips[]": [text]}).startswith("fixed_ips[]: item 0: "), text
        assert refused(game, **{"fixed_ips[]": ["10.0.0.1", text]}).startswith("fixed_ips[]: item 1: "), text


@pytest.mark.parametrize("name", ["fixed_ips[]", "fixed_ips"])
def test_fixed_ips_other_than_an_array_of_strings_are_refused(game: Game, name: str) -> None:
    for value in ("10.0.0.1", 5, True, None, EMPTY[1], [1], [True], [None], [["10.0.0.1"]], [EMPTY[1]]):
        assert "fixed_ips" in refused(game, **{name: value}), value


def test_more_than_64_fixed_ips_are_refused(game: Game) -> None:
    networks = [f"10.0.{number}.0/24" for number in range(65)]
    assert len(game.register(fixed_ips=networks[:64]).row()["fixed_ips"]) == 64
    refused(game, fixed_ips=networks)
    refused(game, fixed_ips=["10.0.0.1"] * 10_000)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("10.1.2.3", "10.1.2.3/32"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("172.16.0.0/12", "172.16.0.0/12"),
        ("192.168.255.255", "192.168.255.255/32"),
        ("fd00::1", "fd00::1/128"),
        ("FC00::1/7", "fc00::/7"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
    ],
)
def test_fixed_ip_without_a_mask_is_one_address_and_host_bits_are_cleared(game: Game, sent: str, kept: str) -> None:
    assert game.register(**{"fixed_ips[]": [sent]}).row()["fixed_ips"] == [kept]


@pytest.mark.parametrize("body", [b"fixed_ips=10.0.0.1", b"fixed_ips[]=10.0.0.1", b"fixed_ips%5B%5D=10.0.0.1"])
def test_form_accepts_both_names_of_fixed_ips(game: Game, body: bytes) -> None:
    assert game.send("getGsid", body, FORM).status_code == 200
    assert query(game.server, "SELECT fixed_ips FROM game_sessions WHERE address = $1", game.address) == [
        (["10.0.0.1/32"],)
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"fixed_ips[]=10.0.0.1&fixed_ips[]=192.168.0.0/24",
        b"fixed_ips=10.0.0.1&fixed_ips=192.168.0.0/24",
        b"fixed_ips=10.0.0.1&distr=x&%66ixed_ips=192.168.0.0/24",
    ],
)
def test_form_accepts_repeated_fixed_ips(game: Game, body: bytes) -> None:
    assert game.send("getGsid", body, FORM).status_code == 200
    rows = query(game.server, "SELECT fixed_ips FROM game_sessions WHERE address = $1", game.address)
    assert rows == [(["10.0.0.1/32", "192.168.0.0/24"],)]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"fixed_ips=10.0.0.1&fixed_ips[]=192.168.0.0/24", FORM),
        (b'{"fixed_ips": ["10.0.0.1"], "fixed_ips[]": ["192.168.0.0/24"]}', {}),
    ],
    ids=["form", "JSON"],
)
def test_fixed_ips_under_both_names_are_refused(game: Game, body: bytes, headers: dict[str, str]) -> None:
    """Otherwise one of the two restrictions would be lost."""
    answer = game.send("getGsid", body, headers)
    assert answer.status_code == 400
    assert answer.json()["error"] == "body: expected fixed_ips[] or fixed_ips, not both"


@pytest.mark.parametrize("name", ["distr", "factor", "app_id", "public_key", "meta"])
def test_form_with_another_repeated_field_is_refused(game: Game, name: str) -> None:
    answer = game.send("getGsid", f"{name}=1&{name}=1".encode(), FORM)
    assert (answer.status_code, answer.json()["error"]) == (400, "body has a repeated field")


def encodings(key: rsa.RSAPublicKey) -> dict[str, str]:
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return {
        "DER": base64.b64encode(public_der(key)).decode(),
        "PKCS#1 DER": base64.b64encode(key.public_bytes(Encoding.DER, PublicFormat.PKCS1)).decode(),
        "base64 of PEM": base64.b64encode(pem).decode(),
        "PEM": pem.decode(),
        "PKCS#1 PEM": key.public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode(),
    }


def test_key_is_accepted_in_every_encoding(game: Game) -> None:
    key = rsa_key().public_key()
    for name, text in encodings(key).items():
        assert game.register(public_key=text).row()["public_key"] == public_der(key), name
        if "\n" not in text:
            assert game.register({"Public-Key": text}).row()["public_key"] == public_der(key), name


@pytest.mark.parametrize("bits", [3072, 4096])
def test_longer_keys_are_accepted(game: Game, bits: int) -> None:
    assert game.get_gsid(public_key=public_text(rsa_key(0, bits))).status_code == 200


def _number(value: int) -> bytes:
    body = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
    return _tagged(2, body)


def _tagged(tag: int, body: bytes) -> bytes:
    size = len(body)
    if size < 128:
        return bytes([tag, size]) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + body


def pkcs1(n: int, e: int) -> str:
    """Encodes any numbers as a PKCS #1 key, also those that libraries refuse."""
    return base64.b64encode(_tagged(0x30, _number(n) + _number(e))).decode()


N = rsa_key().public_key().public_numbers().n
P256 = ec.generate_private_key(ec.SECP256R1())
UNUSABLE = {
    "512 bits": pkcs1(2**511 + 1, 65537),
    "1023 bits": pkcs1(2**1022 + 1, 65537),
    "2047 bits": pkcs1(2**2046 + 1, 65537),
    "8193 bits": pkcs1(2**8192 + 1, 65537),
    "16384 bits": pkcs1(2**16383 + 1, 65537),
    "e = 1": pkcs1(N, 1),
    "e = 2": pkcs1(N, 2),
    "e of 33 bits": pkcs1(N, 2**32 + 1),
    "e even": pkcs1(N, 65538),
    "e negative": pkcs1(N, -65537),
    "e beyond n": pkcs1(N, N + 2),
    "n even": pkcs1(N - 1, 65537),
    "n = 0": pkcs1(0, 65537),
    "n negative": pkcs1(-N, 65537),
    "EC": base64.b64encode(public_der(P256.public_key())).decode(),
    "Ed25519": base64.b64encode(public_der(ed25519.Ed25519PrivateKey.generate().public_key())).decode(),
    "private PEM": rsa_key()
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode(),
    "private DER": base64.b64encode(
        rsa_key().private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    ).decode(),
    "private PEM in base64": base64.b64encode(
        rsa_key().private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    ).decode(),
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "garbage": "not a key",
    "base64 of garbage": base64.b64encode(b"garbage" * 20).decode(),
    "base64url": public_text(rsa_key()).replace("+", "-").replace("/", "_") + "-_",
    "half of one": public_text(rsa_key())[:200],
    "one and more": base64.b64encode(public_der(rsa_key().public_key()) + b"\x00\x00").decode(),
}  # fmt: skip


def test_unusable_key_is_refused(game: Game) -> None:
    for name, text in UNUSABLE.items():
        assert refused(game, public_key=text).startswith("public_key: "), name
        assert refused(game, jwt_public_key=text).startswith("jwt_public_key: "), name
        if "\n" not in text:
            refused(game, {"Public-Key": text})


def test_private_key_that_was_sent_is_not_logged(game: Game) -> None:
    for name in ("private PEM", "private DER", "private PEM in base64"):
        assert "PRIVATE" not in refused(game, public_key=UNUSABLE[name])
        assert UNUSABLE[name][40:90] not in game.server.log()


def test_key_of_a_megabyte_is_refused(game: Game) -> None:
    assert game.get_gsid(public_key="A" * 1_000_000).status_code == 413


@pytest.mark.parametrize("name", UNUSABLE)
def test_bad_key_is_refused_quickly(name: str) -> None:
    def look() -> float:
        began = time.perf_counter()
        with pytest.raises(UnusableKey):
            load_rsa_public(UNUSABLE[name])
        return time.perf_counter() - began

    assert min(look() for _ in range(5)) < 0.1


def test_gsids_and_secrets_are_random(game: Game) -> None:
    made = [game.register() for _ in range(20)]
    assert len({session.gsid for session in made}) == len({session.secret for session in made}) == 20
    assert sorted(session.gsid for session in made) != [session.gsid for session in made]
    assert len({session.match for session in made}) > 10


def test_methods_other_than_post_are_refused(server: Server) -> None:
    with server.client() as client:
        assert client.get(f"{BASE}/getGsid").status_code == 405


def test_endpoint_sends_no_cors_headers(game: Game) -> None:
    answer: httpx.Response = game.get_gsid({"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
