"""Random ids and secrets, digests of secrets, and the format of user ids."""

import base64
import hashlib
import os
import re

MAX_APPLICATION_ID = 2**31 - 1
USER_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
SECRET_TOKEN = r"[A-Za-z0-9_-]{43}"  # noqa: S105 - the pattern of secret_token()


def secret_token() -> str:
    """Returns 256 random bits in base64url, safe in a URL, a header and a cookie."""
    return base64.urlsafe_b64encode(os.urandom(32))[:-1].decode()


def digest(secret: str) -> bytes:
    """Returns the digest that the database stores instead of a secret."""
    return hashlib.sha256(secret.encode()).digest()


def record_id() -> str:
    """Returns a random id for a request or a log record."""
    return os.urandom(8).hex()


def is_user_id(text: str) -> bool:
    """Returns whether the text is a canonical user id: ASCII digits, no sign, no leading zeros."""
    return USER_ID.fullmatch(text) is not None and int(text) < 2**63
