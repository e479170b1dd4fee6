"""Which keys are accepted, in which encodings, and their JWKs.

More than 300 lines: many encodings of valid and invalid keys.
"""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, rsa, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sso.core.algorithms import ALGORITHMS
from sso.core.keys import (
    GENERATE,
    MAX_PEM,
    UnusableKey,
    algorithm_of,
    is_costly,
    key_id,
    load_private,
    load_public,
    load_rsa_public,
    private_pem,
    public_jwk,
    public_pem,
)
from tests.kit.key_encodings import b64, diffie_hellman_der, rsa_der
from tests.kit.rsa_keys import rsa_key

RSA = rsa_key()
PUBLIC_MEMBERS = {
    "RS256": {"kid", "use", "alg", "kty", "n", "e"},
    "ES256": {"kid", "use", "alg", "kty", "crv", "x", "y"},
    "EdDSA": {"kid", "use", "alg", "kty", "crv", "x"},
}


def pem_of(public: Any) -> str:
    text: bytes = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text.decode()


def der_of(public: Any) -> bytes:
    der: bytes = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return der


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_generated_key_is_loaded_from_its_pem(algorithm: str) -> None:
    key = GENERATE[algorithm]()
    assert algorithm_of(key.public_key()) == algorithm
    assert load_private(private_pem(key)).public_key() == key.public_key()
    assert load_public(public_pem(key.public_key())) == key.public_key()


def test_generated_rsa_key_has_2048_bits_and_the_usual_exponent() -> None:
    key = GENERATE["RS256"]().public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    assert key.key_size == 2048
    assert key.public_numbers().e == 65537


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_jwk_has_public_members_only(algorithm: str) -> None:
    key = GENERATE[algorithm]()
    jwk = public_jwk(key.public_key(), "some-kid")
    assert set(jwk) == PUBLIC_MEMBERS[algorithm]
    assert jwk["kid"] == "some-kid"
    assert jwk["use"] == "sig"
    assert jwk["alg"] == algorithm
    assert all(isinstance(value, str) and "=" not in value for value in jwk.values())


def test_coordinates_of_an_ec_jwk_have_32_bytes() -> None:
    """Leading zeros are kept (RFC 7518, 6.2.1.2)."""
    for secret in range(1, 400):
        public = ec.derive_private_key(secret, ec.SECP256R1()).public_key()
        jwk = public_jwk(public, "k")
        assert len(jwk["x"]) == len(jwk["y"]) == 43


def test_key_id_is_derived_from_the_key() -> None:
    one, other = RSA.public_key(), GENERATE["ES256"]().public_key()
    again = load_public(public_pem(one))
    assert key_id(one) == key_id(again)
    assert key_id(one) != key_id(other)
    assert len(key_id(one)) == 20


@pytest.mark.parametrize("bits", [1024, 1536, 2047])
def test_rsa_key_with_less_than_2048_bits_is_rejected(bits: int) -> None:
    key = rsa.generate_private_key(65537, bits)
    with pytest.raises(UnusableKey):
        load_public(pem_of(key.public_key()))
    with pytest.raises(UnusableKey):
        load_rsa_public(b64(der_of(key.public_key())))
    with pytest.raises(UnusableKey):
        load_private(private_pem(key))


N = RSA.public_key().public_numbers().n


@pytest.mark.parametrize(
    ("n", "e"),
    [
        (N >> (2048 - 512) | 1, 65537),
        (N >> (2048 - 1023) | 1, 65537),
        (1 << 16383 | 1, 65537),
        (1 << 8192 | 1, 65537),
        (N, 1),
        (N, 2),
        (N, 65536),
        (N, 65538),
        (N, 2**32),
        (N, 2**32 + 1),
        (N, 2**64 + 1),
        (1 << 3071 | 1, (1 << 3069) - 1),
        (1 << 3071 | 1, (1 << 3071) - 1),
        (N, 0),
        (N, -65537),
        (N - 1, 65537),
        (0, 65537),
        (1, 65537),
        (-N, 65537),
    ],
    ids=lambda number: f"{number.bit_length()}bits-{number % 2}-{number if abs(number) < 10**6 else ''}",
)
def test_weak_and_malformed_rsa_keys_are_rejected(n: int, e: int) -> None:
    with pytest.raises(UnusableKey):
        load_rsa_public(b64(rsa_der(n, e)))


@pytest.mark.parametrize("bits", [2048, 3072, 8192])
def test_rsa_keys_with_2048_to_8192_bits_are_accepted(bits: int) -> None:
    odd = 1 << (bits - 1) | 1
    for exponent in (3, 17, 65537, 2**32 - 1):
        key = load_rsa_public(b64(rsa_der(odd, exponent)))
        assert (key.key_size, key.public_numbers().e) == (bits, exponent)


@pytest.mark.parametrize(
    ("bits", "exponent", "costly"),
    [(2048, 3, False), (4096, 65537, False), (4097, 65537, True), (2048, 65539, True), (8192, 2**32 - 1, True)],
)
def test_verification_is_costly_above_4096_bits_or_with_an_unusual_exponent(
    bits: int, exponent: int, costly: bool
) -> None:
    assert is_costly(load_rsa_public(b64(rsa_der(1 << (bits - 1) | 1, exponent)))) is costly


def test_other_kinds_of_keys_are_rejected_before_the_library_loads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL checks a Diffie-Hellman key while it loads it, which takes 14 ms for one of 4 kB."""

    def load(*_: object) -> None:
        raise AssertionError("the library loaded the key")

    monkeypatch.setattr(serialization, "load_der_public_key", load)
    monkeypatch.setattr(serialization, "load_pem_public_key", load)
    for bits in (512, 2048, 7000, 20_000):
        der = diffie_hellman_der(bits)
        pem = f"-----BEGIN PUBLIC KEY-----\n{b64(der)}\n-----END PUBLIC KEY-----\n"
        for text in (b64(der), pem, b64(pem.encode())):
            with pytest.raises(UnusableKey):
                load_rsa_public(text)
        with pytest.raises(UnusableKey):
            load_public(pem)
    with pytest.raises(UnusableKey, match="2048 to 8192 bits"):
        load_rsa_public(b64(rsa_der((1 << 16383) | 1, 65537)))


FORMS = {
    "PEM": pem_of(RSA.public_key()),
    "PEM without its last newline": pem_of(RSA.public_key()).strip(),
    "PEM with CRLF": pem_of(RSA.public_key()).replace("\n", "\r\n"),
    "PKCS#1 PEM": RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode(),
    "base64 of DER": b64(der_of(RSA.public_key())),
    "base64 of PKCS#1 DER": b64(RSA.public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)),
    "base64 of PEM": b64(pem_of(RSA.public_key()).encode()),
    "base64 of PKCS#1 PEM": b64(RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1)),
}


@pytest.mark.parametrize("form", FORMS)
def test_rsa_key_is_accepted_in_every_supported_encoding(form: str) -> None:
    assert load_rsa_public(FORMS[form]) == RSA.public_key()


def certificate() -> str:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sso")])
    start = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(RSA.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=1))
        .sign(RSA, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode()


def private_der() -> bytes:
    return RSA.private_bytes(Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def private_pkcs1() -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return RSA.private_bytes(Encoding.PEM, form, serialization.NoEncryption()).decode()


PEM = pem_of(RSA.public_key())
NO_PUBLIC_KEYS = {
    "nothing": "",
    "spaces": "   ",
    "words": "not a key",
    "a private key": private_pem(RSA),
    "a PKCS#1 private key": private_pkcs1(),
    "base64 of a private key's PEM": b64(private_pem(RSA).encode()),
    "base64 of a private key's DER": b64(private_der()),
    "a public and a private key": PEM + private_pem(RSA),
    "a certificate": certificate(),
    "half a PEM": PEM[: len(PEM) // 2],
    "an empty PEM": "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
    "a PEM of garbage": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    "a PEM with letters that are no ASCII": PEM.replace("M", "Ⅿ"),
    "a lone surrogate": PEM + "\ud800",
    "a NUL": PEM[:40] + "\0" + PEM[40:],
    "base64 with a line break": FORMS["base64 of DER"][:64] + "\n" + FORMS["base64 of DER"][64:],
    "base64 with junk": FORMS["base64 of DER"] + "!",
    "base64url": b64(der_of(RSA.public_key())).replace("+", "-").replace("/", "_") + "-_==",
    "a DER with something after it": b64(der_of(RSA.public_key()) + b"\0\0\0"),
    "half a DER": b64(der_of(RSA.public_key())[:100]),
    "too long": "A" * (MAX_PEM + 4),
    "a PEM that is too long": PEM + " " * MAX_PEM,
    "a megabyte": "A" * 1_000_000,
}


@pytest.mark.parametrize("name", NO_PUBLIC_KEYS)
def test_error_of_an_invalid_key_does_not_quote_it(name: str) -> None:
    text = NO_PUBLIC_KEYS[name]
    for load in (load_public, load_rsa_public):
        with pytest.raises(UnusableKey) as caught:
            load(text)
        assert len(str(caught.value)) < 100
        assert "MII" not in str(caught.value)


OTHER_KINDS: dict[str, Callable[[], Any]] = {
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "secp256k1": lambda: ec.generate_private_key(ec.SECP256K1()),
    "X25519": x25519.X25519PrivateKey.generate,
    "Ed448": ed448.Ed448PrivateKey.generate,
    "DSA": lambda: dsa.generate_private_key(1024),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_other_curves_and_kinds_are_rejected(kind: str) -> None:
    public = OTHER_KINDS[kind]().public_key()
    with pytest.raises(UnusableKey, match="RSA, EC P-256 or Ed25519"):
        load_public(pem_of(public))
    with pytest.raises(UnusableKey):
        load_rsa_public(b64(der_of(public)))


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
def test_other_algorithm_is_rejected_if_rsa_is_required(algorithm: str) -> None:
    public = GENERATE[algorithm]().public_key()
    with pytest.raises(UnusableKey, match="expected an RSA key"):
        load_rsa_public(pem_of(public))
    with pytest.raises(UnusableKey, match="expected an RSA key"):
        load_rsa_public(b64(der_of(public)))


def test_private_key_is_accepted_only_as_unencrypted_pem() -> None:
    locked = RSA.private_bytes(
        Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"password")
    ).decode()
    other_kind = x25519.X25519PrivateKey.generate().private_bytes(
        Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for text in (locked, PEM, certificate(), "", "garbage", "A" * (MAX_PEM + 1), other_kind.decode()):
        with pytest.raises(UnusableKey):
            load_private(text)
    assert load_private(private_pkcs1()).public_key() == RSA.public_key()


@pytest.mark.parametrize("name", ["d", "dmp1", "dmq1", "iqmp"])
def test_private_rsa_key_with_numbers_that_do_not_belong_together_is_rejected(name: str) -> None:
    numbers = RSA.private_numbers()
    wrong = {part: getattr(numbers, part) for part in ("p", "q", "d", "dmp1", "dmq1", "iqmp")}
    wrong[name] += 2
    key = rsa.RSAPrivateNumbers(**wrong, public_numbers=numbers.public_numbers)
    with pytest.raises(UnusableKey, match="belong together"):
        load_private(private_pem(key.private_key(unsafe_skip_rsa_key_validation=True)))
