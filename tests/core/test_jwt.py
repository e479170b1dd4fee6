"""Verification of JWTs: which checks are made, and that untrusted parts of a token are not believed.

More than 300 lines: one test for each known attack on JWTs.
"""

import base64
import hashlib
import hmac
import json
import socket
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sso.core import jwt
from sso.core.algorithms import ALGORITHMS
from sso.core.jwt import MAX_TOKEN, SKEW_S, InvalidToken, Signer, Verifier, kid_of, peek_claim
from sso.core.keys import GENERATE, PrivateKey, PublicKey, public_jwk, public_pem
from tests.kit.rsa_keys import rsa_key

NOW = 1_800_000_000
ISSUER = "https://sso.example.com"
USER = Verifier("user_token", issuer=ISSUER)
KINDS = ("user_token", "id_token", "refresh_token", "exchanged_token", "service_token")

KEYS: dict[str, PrivateKey] = {"RS256": rsa_key(), "ES256": GENERATE["ES256"](), "EdDSA": GENERATE["EdDSA"]()}
KIDS = {"RS256": "first-RSA", "ES256": "first-EC", "EdDSA": "first-Ed"}
FOREIGN = rsa_key(1)


def find(kid: str) -> PublicKey | None:
    return {KIDS[algorithm]: key.public_key() for algorithm, key in KEYS.items()}.get(kid)


def claims(**changes: Any) -> dict[str, Any]:
    """Returns the claims of a valid user JWT; a claim that is changed to None is left out."""
    good = {"typ": "user_token", "iss": ISSUER, "sub": "12", "iat": NOW - 10, "exp": NOW + 3600}
    return {name: value for name, value in (good | changes).items() if value is not None}


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def signed(
    header: Any,
    body: Any,
    key: PrivateKey | None = None,
    *,
    raw_body: bytes | None = None,
    raw_header: bytes | None = None,
) -> str:
    """Returns a correctly signed token with any header and payload."""
    text = b64(raw_header or json.dumps(header).encode()) + "." + b64(raw_body or json.dumps(body).encode())
    match key or KEYS["RS256"]:
        case rsa.RSAPrivateKey() as private:
            signature = private.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        case ec.EllipticCurvePrivateKey() as private:
            r, s = utils.decode_dss_signature(private.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
            signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        case ed25519.Ed25519PrivateKey() as private:
            signature = private.sign(text.encode())
    return f"{text}.{b64(signature)}"


def signed_by_us(body: dict[str, Any], **header: Any) -> str:
    """Returns a token that is signed with the RSA key."""
    return signed({"alg": "RS256", "typ": "JWT", "kid": KIDS["RS256"], **header}, body)


def is_rejected(token: str, verifier: Verifier = USER, now: float = NOW, reason: str = "") -> bool:
    with pytest.raises(InvalidToken) as caught:
        verifier.verify(token, find, now)
    return reason in str(caught.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_signed_token_verifies_and_has_its_kid_in_header_and_claims(algorithm: str) -> None:
    token = Signer(KIDS[algorithm], KEYS[algorithm], algorithm).sign(claims())
    assert USER.verify(token, find, NOW) == claims() | {"kid": KIDS[algorithm]}
    assert kid_of(token) == KIDS[algorithm]


@pytest.mark.parametrize("spelling", ["none", "None", "NONE", "nOnE", "", " none", None, 0, ["none"], {}])
def test_alg_none_is_rejected_in_every_spelling(spelling: object) -> None:
    token = signed_by_us(claims(), alg=spelling)
    head, body, _ = token.split(".")
    for forged in (token, f"{head}.{body}.", f"{head}.{body}", f"{head}.{body}.AAAA"):
        assert is_rejected(forged)


def test_missing_alg_is_rejected() -> None:
    assert is_rejected(signed({"kid": KIDS["RS256"]}, claims()))


def public_key_as_secret() -> dict[str, bytes]:
    key = KEYS["RS256"].public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    pem = public_pem(key).encode()
    modulus = key.public_numbers().n
    return {
        "PEM": pem,
        "PEM without its last newline": pem.rstrip(b"\n"),
        "PEM with CRLF": pem.replace(b"\n", b"\r\n"),
        "PKCS#1 PEM": key.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        "DER": key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "PKCS#1 DER": key.public_bytes(Encoding.DER, PublicFormat.PKCS1),
        "JWK": json.dumps(public_jwk(key, KIDS["RS256"])).encode(),
        "modulus": modulus.to_bytes(256, "big"),
        "modulus in base64url": b64(modulus.to_bytes(256, "big")).encode(),
        "modulus in decimal": str(modulus).encode(),
        "kid": KIDS["RS256"].encode(),
        "nothing": b"",
    }


@pytest.mark.parametrize("bits", [256, 384, 512])
@pytest.mark.parametrize("form", public_key_as_secret())
def test_hmac_with_the_public_key_is_rejected(bits: int, form: str) -> None:
    head = b64(json.dumps({"alg": f"HS{bits}", "typ": "JWT", "kid": KIDS["RS256"]}).encode())
    text = f"{head}.{b64(json.dumps(claims()).encode())}"
    signature = hmac.new(public_key_as_secret()[form], text.encode(), getattr(hashlib, f"sha{bits}")).digest()
    assert is_rejected(f"{text}.{b64(signature)}", reason="InvalidAlgorithm")


@pytest.mark.parametrize(
    "algorithm", ["RS384", "RS512", "PS256", "ES256", "ES512", "EdDSA", "Ed25519", "rs256", "RS256 "]
)
def test_key_is_used_with_its_own_algorithm_only(algorithm: str) -> None:
    assert is_rejected(signed_by_us(claims(), alg=algorithm), reason="InvalidAlgorithm")


@pytest.mark.parametrize("named", ALGORITHMS)
@pytest.mark.parametrize("used", ALGORITHMS)
def test_token_signed_with_another_key_than_its_kid_is_rejected(named: str, used: str) -> None:
    token = signed({"alg": used, "kid": KIDS[named]}, claims(), KEYS[used])
    if named == used:
        USER.verify(token, find, NOW)
    else:
        assert is_rejected(token)


def test_changed_claim_header_or_signature_is_rejected() -> None:
    head, body, signature = signed_by_us(claims()).split(".")
    other_head, other_body, _ = signed_by_us(claims(sub="13"), extra=1).split(".")
    assert is_rejected(f"{head}.{other_body}.{signature}", reason="InvalidSignature")
    assert is_rejected(f"{other_head}.{body}.{signature}", reason="InvalidSignature")
    assert is_rejected(f"{head}.{body}.{'A' * len(signature)}", reason="InvalidSignature")
    assert is_rejected(f"{head}.{body}.{signature[:-4]}")


FOREIGN_HEADERS = {
    "jwk": public_jwk(FOREIGN.public_key(), KIDS["RS256"]),
    "jku": "http://169.254.169.254/keys",
    "x5u": "http://169.254.169.254/chain.pem",
    "x5c": [b64(FOREIGN.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))],
}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a token caused a network connection")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", FOREIGN_HEADERS)
@pytest.mark.parametrize("kid", [KIDS["RS256"], "foreign"])
def test_key_in_the_header_is_ignored(name: str, kid: str) -> None:
    header = {"alg": "RS256", "kid": kid, name: FOREIGN_HEADERS[name]}
    assert is_rejected(signed(header, claims(), FOREIGN))
    # With a kid of ours, that key is used and no other key is fetched.
    USER.verify(signed_by_us(claims(), **{name: FOREIGN_HEADERS[name]}), find, NOW)


@pytest.mark.parametrize(
    "kid",
    [
        "unknown", "../../../../dev/null", "..%2f..%2fsecret.key", "/etc/passwd", "a' OR '1'='1", "a\0b", "ünï",
        KIDS["RS256"] + " ", KIDS["RS256"] + "\0", KIDS["RS256"].upper(), "x" * 128,
    ],
)  # fmt: skip
def test_unknown_kid_is_rejected(kid: str) -> None:
    assert is_rejected(signed_by_us(claims(), kid=kid), reason="unknown kid")


@pytest.mark.parametrize("kid", [None, "", 1, 1.5, True, ["a"], {"kid": "a"}, "x" * 129, "x" * 5000])
def test_malformed_kid_is_rejected_without_a_lookup(kid: object) -> None:
    def never(kid: str) -> PublicKey | None:
        raise AssertionError(f"looked for {kid!r}")

    with pytest.raises(InvalidToken):
        USER.verify(signed_by_us(claims(), kid=kid), never, NOW)


def test_missing_kid_is_rejected_even_if_the_claims_have_one() -> None:
    assert is_rejected(signed({"alg": "RS256"}, claims(kid=KIDS["RS256"])), reason="bad kid")


@pytest.mark.parametrize(
    "issuer",
    [
        None, "", "https://other.example.com", ISSUER + "/", ISSUER[:-1], ISSUER + ".evil.com", ISSUER.upper(),
        ISSUER.replace("https", "http"), [ISSUER], {"iss": ISSUER}, 1, True, " " + ISSUER,
    ],
)  # fmt: skip
def test_other_issuer_is_rejected(issuer: object) -> None:
    assert is_rejected(signed_by_us(claims(iss=issuer)), reason="wrong iss")


@pytest.mark.parametrize("typ", [None, "", "USER_TOKEN", "user_token ", "user", ["user_token"], {}, 1, True, "at+jwt"])
def test_other_typ_is_rejected(typ: object) -> None:
    assert is_rejected(signed_by_us(claims(typ=typ)), reason="wrong typ")


@pytest.mark.parametrize("meant", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_token_of_one_kind_is_rejected_as_another_kind(meant: str, given: str) -> None:
    token = signed_by_us(claims(typ=given))
    if meant == given:
        Verifier(meant, issuer=ISSUER).verify(token, find, NOW)
    else:
        assert is_rejected(token, Verifier(meant, issuer=ISSUER), reason="wrong typ")


@pytest.mark.parametrize("typ", ["at+jwt", "logout+jwt", "dpop+jwt", "", 1, ["JWT"]])
def test_header_with_another_typ_is_rejected(typ: object) -> None:
    assert is_rejected(signed_by_us(claims(), typ=typ), reason="header")


def test_header_typ_is_optional() -> None:
    for header in ({"typ": "JWT"}, {"typ": "jwt"}, {}):
        USER.verify(signed({"alg": "RS256", "kid": KIDS["RS256"], **header}, claims()), find, NOW)


def test_critical_header_is_rejected() -> None:
    assert is_rejected(signed_by_us(claims(), crit=["exp2"], exp2=1))
    assert is_rejected(signed_by_us(claims(), crit=["b64"], b64=False))
    values: list[object] = [[], ["exp"], ["typ", "kid"], "exp", None, {}, 1]
    for crit in values:
        assert is_rejected(signed_by_us(claims(), crit=crit), reason="header")
        assert is_rejected_as_own(signed_by_us(claims(), crit=crit), "header")


@pytest.mark.parametrize("value", ["DEF", "", None, True])
def test_compressed_or_unencoded_payload_is_rejected(value: object) -> None:
    for name in ("zip", "b64"):
        assert is_rejected(signed_by_us(claims(), **{name: value}), reason="header")
        assert is_rejected_as_own(signed_by_us(claims(), **{name: value}), "header")


def _twice(value: dict[str, Any], name: str, first: object, second: object) -> bytes:
    """Returns JSON of an object that has one member twice."""
    rest = {key: item for key, item in value.items() if key != name}
    both = f"{json.dumps(name)}: {json.dumps(first)}, {json.dumps(name)}: {json.dumps(second)}"
    return f"{json.dumps(rest)[:-1]}{', ' if rest else ''}{both}}}".encode()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ["sub", "exp", "app_id", "fac", "nested"])
def test_duplicate_member_in_the_payload_is_rejected(algorithm: str, name: str) -> None:
    header = {"alg": algorithm, "typ": "JWT", "kid": KIDS[algorithm]}
    good = claims()
    for first, second in ((good.get(name), good.get(name)), (good.get(name), 2**40), ("13", good.get(name))):
        body = _twice(good, name, first, second)
        if name == "nested":
            body = json.dumps(good)[:-1].encode() + b', "act": ' + _twice({}, "sub", first, second) + b"}"
        token = signed(header, None, KEYS[algorithm], raw_body=body)
        assert is_rejected(token, reason="duplicate")
        assert is_rejected_as_own(token, "duplicate")
        with pytest.raises(InvalidToken):
            peek_claim(token, name)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ["alg", "kid", "typ", "x"])
def test_duplicate_member_in_the_header_is_rejected(algorithm: str, name: str) -> None:
    header = {"alg": algorithm, "typ": "JWT", "kid": KIDS[algorithm], "x": "1"}
    for first, second in ((header[name], header[name]), ("none", header[name]), (header[name], "none")):
        raw_header = _twice(header, name, first, second)
        token = signed(None, claims(), KEYS[algorithm], raw_header=raw_header)
        assert is_rejected(token, reason="header")
        assert is_rejected_as_own(token, "header")


@pytest.mark.parametrize(
    "audience", [None, "", "https://other.example.com", [], [[ISSUER]], ["x"], {"aud": ISSUER}, True]
)
def test_other_audience_is_rejected_if_one_is_required(audience: object) -> None:
    service = Verifier("service_token", audience=ISSUER)
    assert is_rejected(signed_by_us(claims(typ="service_token", aud=audience)), service, reason="wrong aud")
    service.verify(signed_by_us(claims(typ="service_token", aud=ISSUER)), find, NOW)


BAD_TIMES = ["9999999999", str(NOW), NOW + 0.5, float(NOW), True, False, -1, [NOW], {}, "", "Infinity"]


@pytest.mark.parametrize("name", ["exp", "iat"])
@pytest.mark.parametrize("value", [None, *BAD_TIMES])
def test_missing_or_non_integer_exp_and_iat_are_rejected(name: str, value: object) -> None:
    assert is_rejected(signed_by_us(claims(**{name: value})), reason=f"bad {name}")


@pytest.mark.parametrize("value", ["0", 0.5, float(NOW - 1), True, [], {}, ""])
def test_non_integer_nbf_is_rejected(value: object) -> None:
    assert is_rejected(signed_by_us(claims(nbf=value)), reason="bad nbf")


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity", "1E3", "1" * 5000, "null"])
def test_non_standard_json_numbers_are_rejected_as_times(number: str) -> None:
    body = json.dumps(claims(exp=None))[:-1] + f', "exp": {number}}}'
    header = {"alg": "RS256", "kid": KIDS["RS256"]}
    assert is_rejected(signed(header, None, raw_body=body.encode()))


def test_token_is_valid_until_its_exp() -> None:
    token = signed_by_us(claims(exp=NOW))
    USER.verify(token, find, NOW - 0.001)
    assert is_rejected(token, now=NOW, reason="expired")
    assert is_rejected(signed_by_us(claims(exp=0, iat=0)), reason="expired")


def test_iat_and_nbf_may_be_ahead_by_the_clock_skew() -> None:
    assert SKEW_S == 30
    for name in ("iat", "nbf"):
        USER.verify(signed_by_us(claims(**{name: NOW + 30})), find, NOW)
        assert is_rejected(signed_by_us(claims(**{name: NOW + 31})), reason=f"bad {name}")
        assert is_rejected(signed_by_us(claims(**{name: NOW + 3600})), reason=f"bad {name}")


def test_token_with_exp_before_iat_is_rejected() -> None:
    assert is_rejected(signed_by_us(claims(iat=NOW + 20, exp=NOW + 10)), reason="bad iat")


def test_expired_for_accepts_an_expired_token_and_nothing_else() -> None:
    token = signed_by_us(claims(iat=NOW - 200, exp=NOW - 100))
    assert USER.verify(token, find, NOW, expired_for=101)["sub"] == "12"
    with pytest.raises(InvalidToken, match="expired"):
        USER.verify(token, find, NOW, expired_for=100)
    for changes in ({"iss": "x"}, {"typ": "id_token"}, {"exp": "x"}, {"iat": NOW + 3600, "exp": NOW + 7200}):
        with pytest.raises(InvalidToken):
            USER.verify(
                signed_by_us(claims(**{"iat": NOW - 200, "exp": NOW - 100} | changes)), find, NOW, expired_for=10**6
            )


def test_payload_that_is_not_an_object_is_rejected() -> None:
    header = {"alg": "RS256", "kid": KIDS["RS256"]}
    for body in (b"[]", b'"text"', b"1", b"null", b"{", b"\xff", b"[" * 4000, b'{"a":' * 1000):
        assert is_rejected(signed(header, None, raw_body=body))
    headers: list[object] = [[], "text", 1, None]
    for bad_header in headers:
        assert is_rejected(signed(bad_header, claims()), reason="bad header")


def misshapen() -> dict[str, str]:
    token = signed_by_us(claims())
    head, body, signature = token.split(".")
    return {
        "empty": "",
        "dots": "..",
        "one part": head,
        "two parts": f"{head}.{body}",
        "four parts": f"{token}.AAAA",
        "ten thousand parts": ".".join(["AAAA"] * 10_000),
        "padding": f"{head}=.{body}.{signature}",
        "padded signature": f"{token}==",
        "plus and slash": f"{head}.{body}.{signature[:-2]}+/",
        "a newline at the end": token + "\n",
        "a space before": " " + token,
        "a NUL": token + "\0",
        "letters that are no ASCII": token[:-1] + "é",
        "digits of another script": token[:-1] + "٣",
        "eight megabytes": f"{head}.{body}.{'A' * 8_000_000}",
        "a long header": f"{'A' * 1_000_000}.{body}.{signature}",
        "just too long": f"{head}.{'A' * MAX_TOKEN}.{signature}",
        "with its scheme": f"Bearer {token}",
        "in quotes": f'"{token}"',
    }


@pytest.mark.parametrize("shape", misshapen())
def test_text_that_is_not_a_jwt_is_rejected(shape: str) -> None:
    """Takes microseconds, also for a long text; the limit only catches a regular expression that backtracks."""
    token = misshapen()[shape]
    durations = []
    for _ in range(3):
        started = time.perf_counter()
        assert is_rejected(token, reason="not a JWT")
        durations.append(time.perf_counter() - started)
    assert min(durations) < 0.1


def test_reason_of_a_rejection_does_not_quote_the_token() -> None:
    for token in (
        signed_by_us(claims(iss="my-secret")),
        signed_by_us(claims(), kid="my-secret"),
        "my-secret",
        signed_by_us(claims()) + "x",
    ):
        with pytest.raises(InvalidToken) as caught:
            USER.verify(token, find, NOW)
        assert "secret" not in str(caught.value)
        assert token not in str(caught.value)


def find_signer(kid: str) -> Signer | None:
    return {KIDS[algorithm]: Signer(KIDS[algorithm], key, algorithm) for algorithm, key in KEYS.items()}.get(kid)


def is_rejected_as_own(token: str, reason: str = "") -> bool:
    with pytest.raises(InvalidToken) as caught:
        USER.verify_own(token, find_signer, NOW)
    return reason in str(caught.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_own_token_is_verified_with_its_private_key(algorithm: str) -> None:
    token = Signer(KIDS[algorithm], KEYS[algorithm], algorithm).sign(claims())
    assert USER.verify_own(token, find_signer, NOW) == USER.verify(token, find, NOW)
    head, body, signature = token.split(".")
    for changed in (
        f"{head}.{body}.{'A' * len(signature)}",
        f"{head}.{body}A.{signature}",
        f"{head}.{body}.{signature}A",
    ):
        assert is_rejected_as_own(changed)
    for other in ("typ", "iss", "exp"):
        assert is_rejected_as_own(Signer(KIDS[algorithm], KEYS[algorithm], algorithm).sign(claims(**{other: None})))


def test_own_token_with_a_non_canonical_signature_is_rejected() -> None:
    """The last base64 character of 64 bytes has four unused bits."""
    token = Signer(KIDS["EdDSA"], KEYS["EdDSA"], "EdDSA").sign(claims())
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [token[:-1] + alphabet[alphabet.index(token[-1]) ^ bit] for bit in (1, 2, 4, 8)]
    assert all(is_rejected_as_own(other, "InvalidSignature") for other in others)


@pytest.mark.parametrize("named", ALGORITHMS)
@pytest.mark.parametrize("alg", ["none", "HS256", *ALGORITHMS])
def test_own_token_with_another_algorithm_is_rejected(named: str, alg: str) -> None:
    token = signed({"alg": alg, "typ": "JWT", "kid": KIDS[named]}, claims(), KEYS[named])
    if alg == named:
        USER.verify_own(token, find_signer, NOW)
    else:
        assert is_rejected_as_own(token, "InvalidAlgorithm")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_non_canonical_signature_is_rejected(algorithm: str) -> None:
    token = Signer(KIDS[algorithm], KEYS[algorithm], algorithm).sign(claims())
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for bit in (1, 2, 4, 8):
        assert is_rejected(token[:-1] + alphabet[alphabet.index(token[-1]) ^ bit], reason="InvalidSignatureError")
    for other in (token[:-1], token[:-4], token + "A", token + "AAAA"):
        assert is_rejected(other, reason="InvalidSignatureError")
    USER.verify(token, find, NOW)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_payload_is_not_parsed_before_the_signature_is_verified(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither here nor in the library, because the sender of a long payload is not known yet."""
    head, _, signature = Signer(KIDS[algorithm], KEYS[algorithm], algorithm).sign(claims()).split(".")
    token = f"{head}.{b64(b'[' * 11_000)}.{signature}"
    kid_of(token)
    decoded: list[int] = []
    decode = base64.urlsafe_b64decode

    def counted(text: bytes | str) -> bytes:
        decoded.append(len(text))
        return decode(text)

    monkeypatch.setattr(base64, "urlsafe_b64decode", counted)
    assert is_rejected(token, reason="InvalidSignatureError")
    assert sum(decoded) < 1000


def test_header_longer_than_a_kilobyte_is_rejected_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    long = {"alg": "RS256", "kid": KIDS["RS256"], "x": ["y"] * 300}
    token = signed(long, claims())
    monkeypatch.setattr(jwt, "parse_part", lambda *_: pytest.fail("the header was parsed"))
    with pytest.raises(InvalidToken, match="bad header"):
        kid_of(token)
