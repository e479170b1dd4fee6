"""Asymmetric key material: which keys are good enough, and their PEM and JWK forms."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

RSA_BITS = range(2048, 8192 + 1)
LEAST_EXPONENT = 65537
PEM_MOST = 16 * 1024

GENERATE: dict[str, Callable[[], PrivateKey]] = {
    "RS256": lambda: rsa.generate_private_key(public_exponent=LEAST_EXPONENT, key_size=2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}
ALGORITHMS = tuple(GENERATE)
CHEAP = ("ES256", "EdDSA")  # a tenth of the time of RS256, for those who can read them


class UnusableKey(ValueError):
    """The key cannot be used; the message says why."""


def algorithm_of(key: PublicKey) -> str:
    """The one algorithm a key is used with; refuses weak and odd keys, which the library loads without complaint."""
    match key:
        case rsa.RSAPublicKey():
            numbers = key.public_numbers()
            if key.key_size not in RSA_BITS or numbers.n % 2 == 0:
                raise UnusableKey("an RSA key must have 2048 to 8192 bits")
            if numbers.e < LEAST_EXPONENT or numbers.e % 2 == 0:
                raise UnusableKey("an RSA key must have an odd exponent of at least 65537")
            return "RS256"
        case ec.EllipticCurvePublicKey() if isinstance(key.curve, ec.SECP256R1):
            return "ES256"
        case ed25519.Ed25519PublicKey():
            return "EdDSA"
    raise UnusableKey("a key must be RSA, EC P-256 or Ed25519")


def signature_with(key: PrivateKey) -> Callable[[bytes], bytes]:
    """What signs with this key and its one algorithm, in the form that a JWS has (RFC 7518 section 3, RFC 8037)."""
    match key:
        case rsa.RSAPrivateKey():
            scheme, digest = padding.PKCS1v15(), hashes.SHA256()
            return lambda text: key.sign(text, scheme, digest)
        case ec.EllipticCurvePrivateKey():
            algorithm = ec.ECDSA(hashes.SHA256())
            return lambda text: _joined(*utils.decode_dss_signature(key.sign(text, algorithm)))
        case ed25519.Ed25519PrivateKey():
            return key.sign


def _joined(r: int, s: int) -> bytes:
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def load_public(pem: str) -> PublicKey:
    """A usable public key from PEM."""
    if len(pem) > PEM_MOST:
        raise UnusableKey("the key is too long")
    if "PRIVATE KEY" in pem:
        raise UnusableKey("this is a private key; a public one is wanted")
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("this is no PEM public key") from None
    algorithm_of(key)  # type: ignore[arg-type]
    return key  # type: ignore[return-value]


def load_rsa_public(text: str) -> rsa.RSAPublicKey:
    """An RSA key as clients send it: PEM, or base64 of DER (SubjectPublicKeyInfo or PKCS#1) or of PEM."""
    if "-----BEGIN" in text:
        key = load_public(text)
    else:
        if len(text) > PEM_MOST:
            raise UnusableKey("the key is too long")
        try:
            raw = base64.b64decode(text, validate=True)
        except ValueError:
            raise UnusableKey("this is neither PEM nor base64") from None
        key = load_public(raw.decode("ascii", "replace")) if raw.startswith(b"-----BEGIN") else _load_der(raw)
    if not isinstance(key, rsa.RSAPublicKey):
        raise UnusableKey("an RSA key is wanted")
    return key


def _load_der(raw: bytes) -> PublicKey:
    try:
        # Reads PKCS#1 as well as SubjectPublicKeyInfo.
        key = serialization.load_der_public_key(raw)
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("this is no public key") from None
    algorithm_of(key)  # type: ignore[arg-type]
    return key  # type: ignore[return-value]


def load_private(pem: str) -> PrivateKey:
    if len(pem) > PEM_MOST:
        raise UnusableKey("the key is too long")
    try:
        key = serialization.load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnusableKey("this is no PEM private key") from None
    algorithm_of(key.public_key())  # type: ignore[arg-type]
    return key  # type: ignore[return-value]


def private_pem(key: PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def public_pem(key: PublicKey) -> str:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def public_der(key: PublicKey) -> bytes:
    """One spelling for a key, however it was sent."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def verify_rsa_signature(der: bytes, signature: str, signed: bytes) -> bool:
    """SHA-256 with RSA (PKCS#1 v1.5), the signature in strict base64, by the key of this DER."""
    key = serialization.load_der_public_key(der)
    assert isinstance(key, rsa.RSAPublicKey)
    try:
        key.verify(base64.b64decode(signature, validate=True), signed, padding.PKCS1v15(), hashes.SHA256())
    except (ValueError, InvalidSignature):
        return False
    return True


def key_id(key: PublicKey) -> str:
    """A stable name made from the key itself. It does not begin with a dash: on a command line that is an option."""
    name = _base64url(hashlib.sha256(public_der(key)).digest()[:15])
    return f"_{name[1:]}" if name.startswith("-") else name


def public_jwk(key: PublicKey, kid: str) -> dict[str, Any]:
    """The published form: public members only, listed by name."""
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
