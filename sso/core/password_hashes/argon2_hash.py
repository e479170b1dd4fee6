"""Argon2 i, d and id with any parameters, and the form of Django."""

import re

import argon2

from sso.core.password_hashes.model import (
    MAX_MEMORY,
    MIN_DIGEST,
    PasswordHash,
    UnusableHash,
    decode_base64,
    encode_base64,
    read_number,
)

MAX_KIB = MAX_MEMORY // 1024
MAX_WORK = 8 * MAX_KIB  # memory in KiB times passes
MAX_PASSES = 64  # each pass starts threads for each lane, which costs more than the memory if that is small
MAX_PARALLELISM = 16
_NUMBER = r"([1-9]\d{0,7})"
_FORM = re.compile(
    rf"\$argon2(?:id|i|d)\$(?:v=(?:16|19)\$)?m={_NUMBER},t={_NUMBER},p={_NUMBER}\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)"
)


def read_argon2(text: str) -> PasswordHash:
    """Raises UnusableHash."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise UnusableHash("expected Argon2 as $argon2id$v=19$m=65536,t=3,p=4$SALT$DIGEST")
    memory = read_number(match[1], "memory of Argon2 in KiB", MAX_KIB)
    passes = read_number(match[2], "number of passes of Argon2", MAX_PASSES)
    if memory * passes > MAX_WORK:
        raise UnusableHash(f"memory in KiB times passes (m * t) of Argon2 must be at most {MAX_WORK:,}")
    if memory < 8 * read_number(match[3], "parallelism of Argon2", MAX_PARALLELISM):
        raise UnusableHash("the memory of Argon2 in KiB must be at least 8 times its parallelism")
    decode_base64(match[4], "salt", minimum=8)
    decode_base64(match[5], "digest", minimum=MIN_DIGEST)
    return PasswordHash(text, "argon2", lambda password: _verify(text, password))


def read_django_argon2(text: str) -> PasswordHash:
    return read_argon2(text.removeprefix("argon2"))


def argon2_text(kind: str, version: int, memory: str, passes: str, parallelism: str, salt: bytes, digest: bytes) -> str:
    """Returns the usual form of a hash, for sources that have its parts as separate fields. It is not checked."""
    costs = f"m={memory},t={passes},p={parallelism}"
    return f"$argon2{kind}$v={version}${costs}${encode_base64(salt)}${encode_base64(digest)}"


def _verify(text: str, password: bytes) -> bool:
    try:
        return argon2.PasswordHasher().verify(text, password)
    except argon2.exceptions.VerificationError:
        return False
