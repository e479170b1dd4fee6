"""Reads a password hash of any known form."""

from collections.abc import Callable, Mapping

from sso.core.password_hashes.argon2_hash import read_argon2, read_django_argon2
from sso.core.password_hashes.bcrypt_hash import read_bcrypt, read_django_bcrypt, read_django_bcrypt_sha256
from sso.core.password_hashes.model import MAX_LENGTH, PasswordHash, UnusableHash
from sso.core.password_hashes.pbkdf2_hash import read_django_pbkdf2, read_passlib_pbkdf2, read_werkzeug_pbkdf2
from sso.core.password_hashes.salted_sha import read_salted_sha
from sso.core.password_hashes.scrypt_hash import (
    read_django_scrypt,
    read_firebase_scrypt,
    read_passlib_scrypt,
    read_werkzeug_scrypt,
)

# By the first characters of a hash. None of them is the beginning of another one.
FORMS: Mapping[str, Callable[[str], PasswordHash]] = {
    "$2a$": read_bcrypt,
    "$2b$": read_bcrypt,
    "$2y$": read_bcrypt,
    "bcrypt$": read_django_bcrypt,
    "bcrypt_sha256$": read_django_bcrypt_sha256,
    "$argon2": read_argon2,
    "argon2$": read_django_argon2,
    "$pbkdf2": read_passlib_pbkdf2,
    "pbkdf2_": read_django_pbkdf2,
    "pbkdf2:": read_werkzeug_pbkdf2,
    "$scrypt$": read_passlib_scrypt,
    "scrypt$": read_django_scrypt,
    "scrypt:": read_werkzeug_scrypt,
    "$firebase-scrypt$": read_firebase_scrypt,
    "sha1$": read_salted_sha,
    "sha256$": read_salted_sha,
    "sha512$": read_salted_sha,
}


def read_password_hash(text: str) -> PasswordHash:
    """Raises UnusableHash if the form is unknown, a part is not valid, or it would cost too much to verify."""
    if len(text) > MAX_LENGTH or not text.isprintable():
        raise UnusableHash(f"expected at most {MAX_LENGTH} printable characters")
    for beginning, read in FORMS.items():
        if text.startswith(beginning):
            return read(text)
    raise UnusableHash("unknown form; expected bcrypt, PBKDF2, scrypt, Argon2 or sha256$SALT$DIGEST")
