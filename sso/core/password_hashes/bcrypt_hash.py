"""bcrypt: ``$2a$``, ``$2b$`` and ``$2y$``, which are one algorithm, and the two forms of Django."""

import hashlib
import re

from sso.core.password_hashes.model import PasswordHash, UnusableHash

MAX_COST = 14
MAX_PASSWORD = 72  # bytes; bcrypt ignores the rest
_FORM = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}([./A-Za-z0-9])[./A-Za-z0-9]{31}", re.ASCII)
_ENDS_OF_SALTS = frozenset(".Oeu")  # the last character of the 22 has two bits of the 16 bytes


def read_bcrypt(text: str) -> PasswordHash:
    """Raises UnusableHash."""
    _check(text)
    return PasswordHash(text, "bcrypt", lambda password: _verify(text, password))


def read_django_bcrypt(text: str) -> PasswordHash:
    return read_bcrypt(text.partition("$")[2])


def read_django_bcrypt_sha256(text: str) -> PasswordHash:
    """Django hashes the password with SHA-256 first, so that bcrypt does not ignore the end of a long one."""
    inner = text.partition("$")[2]
    _check(inner)
    return PasswordHash(text, "bcrypt", lambda password: _verify(inner, hashlib.sha256(password).hexdigest().encode()))


def _check(text: str) -> None:
    form = _FORM.fullmatch(text)
    if form is None:
        raise UnusableHash("expected bcrypt as $2b$COST$ and 53 characters")
    if not 4 <= int(form[1]) <= MAX_COST:
        raise UnusableHash(f"the cost of bcrypt must be from 4 to {MAX_COST}")
    if form[2] not in _ENDS_OF_SALTS:
        raise UnusableHash("the salt of bcrypt must be 16 bytes, so its last character is one of . O e u")


def _verify(text: str, password: bytes) -> bool:
    import bcrypt

    matches: bool = bcrypt.checkpw(password[:MAX_PASSWORD], text.encode())
    return matches
