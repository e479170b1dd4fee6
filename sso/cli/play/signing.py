"""Signatures of requests, which prove the client from any address."""

import base64
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


class BadKey(Exception):
    """The key is unusable; the message is one line with the reason."""


def read_private_key(file: Path) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(file.read_bytes(), password=None)
    except OSError as error:
        raise BadKey(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey(f"{file} is not a PEM private key without a passphrase") from None


def encoded_public_key(key: rsa.RSAPrivateKey | Ed25519PrivateKey) -> str:
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(key.public_key().public_bytes(*form)).decode()


class SigningKey:
    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._key = key

    @classmethod
    def read(cls, file: Path) -> "SigningKey":
        key = read_private_key(file)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise BadKey(f"{file} is not an RSA key")
        return cls(key)

    @property
    def public(self) -> str:
        """The public key as getGsid accepts it: base64 of DER."""
        return encoded_public_key(self._key)

    def sign(self, body: bytes) -> str:
        """Returns the header Request-Sign for a body. The signature covers exactly these bytes."""
        return base64.b64encode(self._key.sign(body, padding.PKCS1v15(), hashes.SHA256())).decode()


def is_signed(public_key: str, body: bytes, signature: str) -> bool:
    """Returns whether the signature over the body is by this key: RSA, Ed25519 or P-256."""
    try:
        text = public_key.strip()
        key = (
            serialization.load_pem_public_key(text.encode())
            if text.startswith("-----")
            else serialization.load_der_public_key(base64.b64decode(text, validate=True))
        )
        raw = base64.b64decode(signature, validate=True)
        match key:
            case rsa.RSAPublicKey():
                key.verify(raw, body, padding.PKCS1v15(), hashes.SHA256())
            case ec.EllipticCurvePublicKey():
                key.verify(raw, body, ec.ECDSA(hashes.SHA256()))
            case Ed25519PublicKey():
                key.verify(raw, body)
            case _:
                return False
    except (ValueError, InvalidSignature):
        return False
    return True
