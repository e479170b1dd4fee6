"""The public keys of players' devices, and the signatures that they make."""

import base64
import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from msgspec import Struct

from sso.core.keys import USUAL_EXPONENT, PublicKey, UnusableKey, algorithm_of, load_der, public_der

MAX_KEY_TEXT = 1024  # base64 of an RSA key of 4,096 bits has 736 characters
MAX_SIGNATURE_TEXT = 1024
RSA_KEY_BITS = range(2048, 4096 + 1)
EXPECTED = "base64 of a SubjectPublicKeyInfo in DER: Ed25519, P-256, or RSA with 2048 to 4096 bits and exponent 65537"


class DeviceKey(Struct, frozen=True):
    digest: bytes  # SHA-256 of the SubjectPublicKeyInfo
    algorithm: str
    key: PublicKey

    def has_signed(self, signature: str, signed: bytes) -> bool:
        """Returns whether the key has made the signature, which is in strict base64.

        The key decides the algorithm: Ed25519, ECDSA with SHA-256 in DER, or RSA PKCS#1 v1.5 with SHA-256.
        """
        if len(signature) > MAX_SIGNATURE_TEXT:
            return False
        try:
            raw = base64.b64decode(signature, validate=True)
            match self.key:
                case ed25519.Ed25519PublicKey():
                    self.key.verify(raw, signed)
                case ec.EllipticCurvePublicKey():
                    self.key.verify(raw, signed, ec.ECDSA(hashes.SHA256()))
                case rsa.RSAPublicKey():
                    self.key.verify(raw, signed, padding.PKCS1v15(), hashes.SHA256())
        except (ValueError, InvalidSignature):
            return False
        return True


def parse_device_key(text: str) -> DeviceKey:
    """Raises UnusableKey. A key has one accepted encoding, so that it has one digest."""
    if len(text) > MAX_KEY_TEXT:
        raise UnusableKey(f"expected {EXPECTED}")
    try:
        raw = base64.b64decode(text, validate=True)
        key = load_der(raw)
    except ValueError:  # UnusableKey, or no base64
        raise UnusableKey(f"expected {EXPECTED}") from None
    if raw != public_der(key) or (isinstance(key, rsa.RSAPublicKey) and not _is_usual(key)):
        raise UnusableKey(f"expected {EXPECTED}")
    return DeviceKey(hashlib.sha256(raw).digest(), algorithm_of(key), key)


def _is_usual(key: rsa.RSAPublicKey) -> bool:
    return key.key_size in RSA_KEY_BITS and key.public_numbers().e == USUAL_EXPONENT
