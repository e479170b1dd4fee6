"""Asymmetric keys: which ones are accepted, and their PEM, DER and JWK forms."""

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

RSA_BITS = range(2048, 8192 + 1)
RSA_EXPONENTS = range(3, 2**32, 2)  # the cost of a verification grows with the exponent
USUAL_EXPONENT = 65537
CHEAP_RSA_BITS = 4096  # with the usual exponent: a tenth of a millisecond
MAX_PEM = 16 * 1024
MAX_DER_BYTES = 2048  # an RSA key of 8,192 bits needs 1,100

_PEM = re.compile(rb"-----BEGIN ((?:RSA )?)PUBLIC KEY-----([A-Za-z0-9+/=\s]*)-----END \1PUBLIC KEY-----")
# The start of a SubjectPublicKeyInfo of the supported kinds of keys, or of a PKCS#1 key. OpenSSL checks keys of other
# kinds while it loads them: a Diffie-Hellman key of 12 kB takes 140 ms. So they are rejected before.
_SEQUENCE = rb"\x30(?:[\x00-\x7f]|\x81.|\x82..)"
_KINDS = (
    rb"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00"  # rsaEncryption
    rb"|\x30\x0b\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"  # the same without parameters
    rb"|\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"  # EC P-256
    rb"|\x30\x05\x06\x03\x2b\x65\x70"  # Ed25519
)
_DER = re.compile(rb"%b(?:%b|\x02)" % (_SEQUENCE, _KINDS), re.DOTALL)  # PKCS#1 begins with the modulus
# The same for private keys: PKCS#8 or PKCS#1 (version 0, or 1 with a public key), or SEC 1 (version 1).
_PRIVATE_PEM = re.compile(rb"-----BEGIN ((?:RSA |EC )?)PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END \1PRIVATE KEY-----")
_PRIVATE_DER = re.compile(rb"%b\x02\x01(?:[\x00\x01](?:%b)|\x00\x02|\x01\x04\x20)" % (_SEQUENCE, _KINDS), re.DOTALL)

GENERATE: dict[str, Callable[[], PrivateKey]] = {
    "RS256": lambda: rsa.generate_private_key(public_exponent=USUAL_EXPONENT, key_size=2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


class UnusableKey(ValueError):
    """The key is not accepted; the message gives the reason."""


def algorithm_of(key: PublicKey) -> str:
    """Returns the one algorithm that a key is used with. Rejects weak and malformed keys, which the library accepts."""
    match key:
        case rsa.RSAPublicKey():
            numbers = key.public_numbers()
            if key.key_size not in RSA_BITS or numbers.n % 2 == 0:
                raise UnusableKey("an RSA key must have 2048 to 8192 bits")
            if numbers.e not in RSA_EXPONENTS:
                raise UnusableKey("an RSA key must have an odd exponent from 3 to 4294967295")
            return "RS256"
        case ec.EllipticCurvePublicKey() if isinstance(key.curve, ec.SECP256R1):
            return "ES256"
        case ed25519.Ed25519PublicKey():
            return "EdDSA"
    raise UnusableKey("a key must be RSA, EC P-256 or Ed25519")


def algorithms_of(key: PublicKey) -> tuple[str, ...]:
    """Returns the algorithms that a key of another party may be used with: an RSA key also with PS256."""
    algorithm = algorithm_of(key)
    return (algorithm, "PS256") if algorithm == "RS256" else (algorithm,)


def signature_with(key: PrivateKey) -> Callable[[bytes], bytes]:
    """Returns a function that signs with this key and its algorithm, in the form of a JWS (RFC 7518 §3, RFC 8037)."""
    match key:
        case rsa.RSAPrivateKey():
            scheme, digest = padding.PKCS1v15(), hashes.SHA256()
            return lambda text: key.sign(text, scheme, digest)
        case ec.EllipticCurvePrivateKey():
            # RFC 6979: the same text gets the same signature, so a repeated response can be the same.
            algorithm = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
            return lambda text: _concatenated(*utils.decode_dss_signature(key.sign(text, algorithm)))
        case ed25519.Ed25519PrivateKey():
            return key.sign


def _concatenated(r: int, s: int) -> bytes:
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def load_public(pem: str) -> PublicKey:
    """Returns the public key of a PEM text. Raises UnusableKey if it is not accepted."""
    if len(pem) > MAX_PEM:
        raise UnusableKey("the key is too long")
    if "PRIVATE KEY" in pem:
        raise UnusableKey("expected a public key, not a private key")
    raw = _pem_content(_PEM, pem)
    if not raw:
        raise UnusableKey("expected a public key in PEM")
    return load_der(raw)


def _pem_content(form: re.Pattern[bytes], pem: str) -> bytes:
    """Returns the DER data in a text, or nothing if the text does not have the form."""
    try:
        block = form.search(pem.encode())
        return base64.b64decode(b"".join(block[2].split()), validate=True) if block else b""
    except ValueError:
        return b""


def load_rsa_public(text: str) -> rsa.RSAPublicKey:
    """Returns an RSA key that a client has sent: PEM, or base64 of DER (SubjectPublicKeyInfo or PKCS#1) or of PEM."""
    if "-----BEGIN" in text:
        key = load_public(text)
    else:
        if len(text) > MAX_PEM:
            raise UnusableKey("the key is too long")
        try:
            raw = base64.b64decode(text, validate=True)
        except ValueError:
            raise UnusableKey("expected PEM or base64") from None
        key = load_public(raw.decode("ascii", "replace")) if raw.startswith(b"-----BEGIN") else load_der(raw)
    if not isinstance(key, rsa.RSAPublicKey):
        raise UnusableKey("expected an RSA key")
    return key


def load_der(raw: bytes) -> PublicKey:
    """Returns the public key of DER data. Only the supported kinds of keys reach the library."""
    if not _DER.match(raw):
        raise UnusableKey("a key must be RSA, EC P-256 or Ed25519")
    if len(raw) > MAX_DER_BYTES:
        raise UnusableKey("an RSA key must have 2048 to 8192 bits")
    try:
        # Reads PKCS#1 as well as SubjectPublicKeyInfo.
        key = serialization.load_der_public_key(raw)
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("expected a public key") from None
    algorithm_of(key)  # type: ignore[arg-type]
    return key  # type: ignore[return-value]


def load_rsa_der(raw: bytes) -> rsa.RSAPublicKey:
    key = load_der(raw)
    if not isinstance(key, rsa.RSAPublicKey):
        raise UnusableKey("expected an RSA key")
    return key


def load_private(pem: str) -> PrivateKey:
    """Returns the private key of a PEM text. Only the supported kinds of keys reach the library. Raises UnusableKey."""
    if len(pem) > MAX_PEM:
        raise UnusableKey("the key is too long")
    raw = _pem_content(_PRIVATE_PEM, pem)
    if not _PRIVATE_DER.match(raw):
        raise UnusableKey("expected a private key in PEM: RSA, EC P-256 or Ed25519")
    try:
        key = serialization.load_der_private_key(raw, password=None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError):
        raise UnusableKey("expected a private key in PEM") from None
    algorithm_of(key.public_key())  # type: ignore[arg-type]
    if isinstance(key, rsa.RSAPrivateKey):
        _check_private_numbers(key.private_numbers())
    return key  # type: ignore[return-value]


def _check_private_numbers(numbers: rsa.RSAPrivateNumbers) -> None:
    """Raises UnusableKey if the numbers do not belong together: OpenSSL relies on it when it signs.

    The library would also ask whether the factors are primes. That takes 40 ms for 2,048 bits and 300 ms for 4,096, in
    which no other thread runs. Without primes, signing fails or makes signatures that nobody accepts.
    """
    p, q, d = numbers.p, numbers.q, numbers.d
    public = numbers.public_numbers
    belong_together = (
        min(p, q, d) > 2
        and p % 2 == q % 2 == 1
        and p * q == public.n
        and public.e * d % (p - 1) == public.e * d % (q - 1) == 1
        and (numbers.dmp1, numbers.dmq1) == (d % (p - 1), d % (q - 1))
        and numbers.iqmp * q % p == 1
    )
    if not belong_together:
        raise UnusableKey("the numbers of the RSA key do not belong together")


def private_pem(key: PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def public_pem(key: PublicKey) -> str:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def public_der(key: PublicKey) -> bytes:
    """Returns the canonical encoding of a key."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def is_costly(key: PublicKey) -> bool:
    """Returns whether a verification may take a millisecond, which is too long for the event loop."""
    return isinstance(key, rsa.RSAPublicKey) and (
        key.key_size > CHEAP_RSA_BITS or key.public_numbers().e > USUAL_EXPONENT
    )


def verify_rsa_signature(key: rsa.RSAPublicKey, signature: str, signed: bytes) -> bool:
    """Returns whether a signature (RSA PKCS#1 v1.5 with SHA-256, in strict base64) is valid."""
    try:
        key.verify(base64.b64decode(signature, validate=True), signed, padding.PKCS1v15(), hashes.SHA256())
    except (ValueError, InvalidSignature):
        return False
    return True


def key_id(key: PublicKey) -> str:
    """Returns an id derived from the key. It never starts with a dash, which would be an option on a command line."""
    name = _base64url(hashlib.sha256(public_der(key)).digest()[:15])
    return f"_{name[1:]}" if name.startswith("-") else name


def public_jwk(key: PublicKey, kid: str) -> dict[str, Any]:
    """Returns the JWK of a public key."""
    jwk: dict[str, Any] = {"kid": kid, "use": "sig", "alg": algorithm_of(key)}
    match key:
        case rsa.RSAPublicKey():
            rsa_numbers = key.public_numbers()
            return jwk | {"kty": "RSA", "n": _number(rsa_numbers.n), "e": _number(rsa_numbers.e)}
        case ec.EllipticCurvePublicKey():
            point = key.public_numbers()
            return jwk | {"kty": "EC", "crv": "P-256", "x": _number(point.x, 32), "y": _number(point.y, 32)}
        case ed25519.Ed25519PublicKey():
            raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            return jwk | {"kty": "OKP", "crv": "Ed25519", "x": _base64url(raw)}


def _number(value: int, size: int | None = None) -> str:
    return _base64url(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
