"""Requests signed with an RSA key: whoever holds the key is the client, wherever it is."""

import base64
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa


class BadKey(Exception):
    """One line that says why."""


class SigningKey:
    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._key = key

    @classmethod
    def read(cls, file: Path) -> "SigningKey":
        try:
            key = serialization.load_pem_private_key(file.read_bytes(), password=None)
        except OSError as error:
            raise BadKey(f"cannot read {file}: {error.strerror}") from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise BadKey(f"{file} holds no private key in PEM without a passphrase") from None
        if not isinstance(key, rsa.RSAPrivateKey):
            raise BadKey(f"{file} holds no RSA key")
        return cls(key)

    @property
    def public(self) -> str:
        """As getGsid takes it: base64 of DER."""
        form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(self._key.public_key().public_bytes(*form)).decode()

    def sign(self, body: bytes) -> str:
        """For the header Request-Sign; over exactly the bytes that are sent."""
        return base64.b64encode(self._key.sign(body, padding.PKCS1v15(), hashes.SHA256())).decode()
