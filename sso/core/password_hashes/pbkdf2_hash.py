"""PBKDF2 with SHA-1, SHA-256 and SHA-512: the forms of Django, passlib and Werkzeug."""

import hashlib
import hmac
import re

from sso.core.password_hashes.model import (
    MIN_DIGEST,
    PasswordHash,
    UnusableHash,
    decode_base64,
    decode_hex,
    encode_base64,
    read_number,
)

# Times the number of blocks that the digest has.
MAX_ITERATIONS = {"sha1": 2_000_000, "sha256": 2_000_000, "sha512": 1_500_000}
_DJANGO = re.compile(r"pbkdf2_(sha1|sha256|sha512)\$(\d+)\$([^$]*)\$([^$]+)", re.ASCII)
_PASSLIB = re.compile(r"\$pbkdf2(?:-(sha1|sha256|sha512))?\$(\d+)\$([^$]*)\$([^$]+)", re.ASCII)
_WERKZEUG = re.compile(r"pbkdf2:(sha1|sha256|sha512):(\d+)\$([^$]*)\$([^$]+)", re.ASCII)


def read_django_pbkdf2(text: str) -> PasswordHash:
    algorithm, iterations, salt, digest = _parts(_DJANGO, text, "pbkdf2_sha256$ITERATIONS$SALT$DIGEST")
    return _pbkdf2(text, algorithm, iterations, salt.encode(), decode_base64(digest, "digest", minimum=MIN_DIGEST))


def read_passlib_pbkdf2(text: str) -> PasswordHash:
    algorithm, iterations, salt, digest = _parts(_PASSLIB, text, "$pbkdf2-sha256$ITERATIONS$SALT$DIGEST")
    decoded = decode_base64(digest, "digest", minimum=MIN_DIGEST)
    return _pbkdf2(text, algorithm or "sha1", iterations, decode_base64(salt, "salt"), decoded)


def read_werkzeug_pbkdf2(text: str) -> PasswordHash:
    algorithm, iterations, salt, digest = _parts(_WERKZEUG, text, "pbkdf2:sha256:ITERATIONS$SALT$DIGEST")
    return _pbkdf2(text, algorithm, iterations, salt.encode(), decode_hex(digest, "digest"))


def passlib_text(algorithm: str, iterations: int, salt: bytes, digest: bytes) -> str:
    """Returns the hash in the form of passlib, for sources that have its parts as separate fields."""
    return f"$pbkdf2-{algorithm}${iterations}${encode_base64(salt)}${encode_base64(digest)}"


def _parts(form: re.Pattern[str], text: str, expected: str) -> tuple[str, str, str, str]:
    match = form.fullmatch(text)
    if match is None:
        raise UnusableHash(f"expected PBKDF2 as {expected}")
    return match[1], match[2], match[3], match[4]


def _pbkdf2(text: str, algorithm: str, iterations: str, salt: bytes, digest: bytes) -> PasswordHash:
    blocks = -(-len(digest) // hashlib.new(algorithm).digest_size)
    count = read_number(iterations, "number of iterations", MAX_ITERATIONS[algorithm] // blocks)

    def verify(password: bytes) -> bool:
        return hmac.compare_digest(hashlib.pbkdf2_hmac(algorithm, password, salt, count, len(digest)), digest)

    return PasswordHash(text, f"pbkdf2-{algorithm}", verify)
