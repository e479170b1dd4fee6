"""The key of a device, with which a game signs its guest in."""

import base64
import os
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sso.cli.play.signing import BadKey, encoded_public_key, read_private_key


class GuestKey:
    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def read_or_create(cls, file: Path) -> "GuestKey":
        """Returns the key in the file. Creates the file, which only this account can read, if there is none."""
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return cls(_read(file))
        except OSError as error:
            raise BadKey(f"cannot create {file}: {error.strerror}") from None
        key = Ed25519PrivateKey.generate()
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        with os.fdopen(descriptor, "wb") as output:
            output.write(key.private_bytes(*form))
        return cls(key)

    @property
    def public(self) -> str:
        return encoded_public_key(self._key)

    def sign(self, body: bytes) -> str:
        """Returns the header Request-Sign for a body. The signature covers exactly these bytes."""
        return base64.b64encode(self._key.sign(body)).decode()


def _read(file: Path) -> Ed25519PrivateKey:
    key = read_private_key(file)
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey(f"{file} is not an Ed25519 key")
    return key
