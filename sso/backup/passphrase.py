"""Encryption with a passphrase: AES-256-GCM under a key that scrypt derives."""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAGIC = b"sso passphrase 1\n"
SALT_BYTES = 16
NONCE_BYTES = 12
# 128 MB and about half a second for each guess.
SCRYPT = {"length": 32, "n": 2**17, "r": 8, "p": 1}


class WrongPassphrase(Exception):
    """The passphrase is wrong, or the data was changed."""


def encrypt(passphrase: str, plaintext: bytes) -> bytes:
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    return MAGIC + salt + nonce + _cipher(passphrase, salt).encrypt(nonce, plaintext, MAGIC)


def decrypt(passphrase: str, box: bytes) -> bytes:
    """Raises WrongPassphrase if the passphrase does not fit the data."""
    if not box.startswith(MAGIC):
        raise WrongPassphrase
    salt, rest = box[len(MAGIC) :][:SALT_BYTES], box[len(MAGIC) + SALT_BYTES :]
    try:
        return _cipher(passphrase, salt).decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], MAGIC)
    except (InvalidTag, ValueError):
        raise WrongPassphrase from None


def _cipher(passphrase: str, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt, **SCRYPT).derive(passphrase.encode()))
