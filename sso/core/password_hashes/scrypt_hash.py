"""scrypt: the forms of Django, passlib and Werkzeug, and the modified one of Firebase."""

import hashlib
import hmac
import re

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sso.core.password_hashes.model import (
    MAX_MEMORY,
    MIN_DIGEST,
    PasswordHash,
    UnusableHash,
    decode_base64,
    decode_hex,
    encode_base64,
    read_number,
)

MAX_WORK = 3 * MAX_MEMORY  # bytes that are written: 128 * N * r * p
# With a small N, most of the time goes into the 128 * r * p bytes that PBKDF2 makes, and reads again for each 32 bytes
# of the digest.
MAX_BLOCK, MAX_PARALLEL, MAX_DIGEST = 64, 16, 64
_DJANGO = re.compile(r"scrypt\$(\d+)\$([^$]*)\$(\d+)\$(\d+)\$([^$]+)", re.ASCII)
_PASSLIB = re.compile(r"\$scrypt\$ln=(\d+),r=(\d+),p=(\d+)\$([^$]*)\$([^$]+)", re.ASCII)
_WERKZEUG = re.compile(r"scrypt:(\d+):(\d+):(\d+)\$([^$]*)\$([^$]+)", re.ASCII)
_FIREBASE = re.compile(r"\$firebase-scrypt\$m=(\d+),r=(\d+)\$([^$]+)\$([^$]*)\$([^$]*)\$([^$]+)", re.ASCII)


def read_django_scrypt(text: str) -> PasswordHash:
    match = _match(_DJANGO, text, "scrypt$N$SALT$R$P$DIGEST")
    return _scrypt(text, match[1], match[3], match[4], match[2].encode(), decode_base64(match[5], "digest"))


def read_passlib_scrypt(text: str) -> PasswordHash:
    match = _match(_PASSLIB, text, "$scrypt$ln=16,r=8,p=1$SALT$DIGEST")
    n = str(1 << read_number(match[1], "ln of scrypt", 20))
    return _scrypt(text, n, match[2], match[3], decode_base64(match[4], "salt"), decode_base64(match[5], "digest"))


def read_werkzeug_scrypt(text: str) -> PasswordHash:
    match = _match(_WERKZEUG, text, "scrypt:N:R:P$SALT$DIGEST")
    return _scrypt(text, match[1], match[2], match[3], match[4].encode(), decode_hex(match[5], "digest"))


def read_firebase_scrypt(text: str) -> PasswordHash:
    """scrypt makes a key that encrypts the signer key of the project; the result is the digest."""
    match = _match(_FIREBASE, text, "$firebase-scrypt$m=14,r=8$SIGNER_KEY$SALT_SEPARATOR$SALT$DIGEST")
    n = 1 << read_number(match[1], "memory cost of scrypt", 20)
    r = read_number(match[2], "rounds of scrypt", MAX_BLOCK)
    _check_cost(n, r, 1)
    signer_key, digest = decode_base64(match[3], "signer key", minimum=MIN_DIGEST), decode_base64(match[6], "digest")
    _check_digest(digest)
    if len(signer_key) != len(digest):
        raise UnusableHash("the signer key must have as many bytes as the digest")
    salt = decode_base64(match[5], "salt") + decode_base64(match[4], "salt separator")

    def verify(password: bytes) -> bool:
        key = hashlib.scrypt(password, salt=salt, n=n, r=r, p=1, maxmem=2 * MAX_MEMORY, dklen=32)
        encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        return hmac.compare_digest(encryptor.update(signer_key) + encryptor.finalize(), digest)

    return PasswordHash(text, "firebase-scrypt", verify)


def firebase_text(
    memory_cost: int, rounds: int, signer_key: bytes, separator: bytes, salt: bytes, digest: bytes
) -> str:
    """Returns the form in which hashes of Firebase are imported and stored, with the parameters of their project."""
    parts = "$".join(encode_base64(part) for part in (signer_key, separator, salt, digest))
    return f"$firebase-scrypt$m={memory_cost},r={rounds}${parts}"


def _match(form: re.Pattern[str], text: str, expected: str) -> re.Match[str]:
    match = form.fullmatch(text)
    if match is None:
        raise UnusableHash(f"expected scrypt as {expected}")
    return match


def _scrypt(text: str, n: str, r: str, p: str, salt: bytes, digest: bytes) -> PasswordHash:
    cost, block, parallel = (
        read_number(part, f"{name} of scrypt", maximum)
        for part, name, maximum in ((n, "N", 1 << 20), (r, "r", MAX_BLOCK), (p, "p", MAX_PARALLEL))
    )
    _check_cost(cost, block, parallel)
    _check_digest(digest)

    def verify(password: bytes) -> bool:
        computed = hashlib.scrypt(
            password, salt=salt, n=cost, r=block, p=parallel, maxmem=2 * MAX_MEMORY, dklen=len(digest)
        )
        return hmac.compare_digest(computed, digest)

    return PasswordHash(text, "scrypt", verify)


def _check_digest(digest: bytes) -> None:
    if not MIN_DIGEST <= len(digest) <= MAX_DIGEST:
        raise UnusableHash(f"the digest must have from {MIN_DIGEST} to {MAX_DIGEST} bytes")


def _check_cost(n: int, r: int, p: int) -> None:
    if n < 2 or n & (n - 1):
        raise UnusableHash("N of scrypt must be a power of two")
    if r < 4 and n >= 1 << 16 * r:
        raise UnusableHash("N of scrypt must be less than 2 to the power of 16 * r")
    if 128 * n * r > MAX_MEMORY or 128 * n * r * p > MAX_WORK:
        raise UnusableHash("scrypt may use at most 128 MiB (128 * N * r), and at most 384 MiB with p (128 * N * r * p)")
