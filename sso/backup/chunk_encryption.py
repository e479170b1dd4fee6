"""Encryption of a stream in chunks: AES-256-GCM, in the manner of STREAM (Hoang, Reyhanitabar, Rogaway, Vizár 2015).

The nonce of a chunk is its number and whether it is the last one. A chunk that is missing, repeated, at another place
or of another stream is therefore refused, and so is a stream without its end. Each stream needs a key of its own.
"""

import os
from collections.abc import Iterable, Iterator

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
CHUNK_BYTES = 1 << 20
TAG_BYTES = 16


class DamagedStream(Exception):
    """The stream was changed or cut, or the key belongs to another stream."""


def new_key() -> bytes:
    return os.urandom(KEY_BYTES)


def encrypt_stream(key: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields encrypted chunks. All but the last have CHUNK_BYTES of the plaintext."""
    cipher, number, pending = AESGCM(key), 0, bytearray()
    for piece in pieces:
        pending += piece
        while len(pending) > CHUNK_BYTES:
            yield cipher.encrypt(_nonce(number, last=False), bytes(pending[:CHUNK_BYTES]), None)
            del pending[:CHUNK_BYTES]
            number += 1
    yield cipher.encrypt(_nonce(number, last=True), bytes(pending), None)


def decrypt_stream(key: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the plaintext of each chunk that is authentic. Raises DamagedStream at the first other one."""
    cipher, number, pending, size = AESGCM(key), 0, bytearray(), CHUNK_BYTES + TAG_BYTES
    try:
        for piece in pieces:
            pending += piece
            while len(pending) > size:
                yield cipher.decrypt(_nonce(number, last=False), bytes(pending[:size]), None)
                del pending[:size]
                number += 1
        yield cipher.decrypt(_nonce(number, last=True), bytes(pending), None)
    except (InvalidTag, ValueError):
        raise DamagedStream from None


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])
