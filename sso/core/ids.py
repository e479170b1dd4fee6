"""Random names and secrets, and the digest under which a secret is stored."""

import base64
import hashlib
import os
import re

MAX_APPLICATION_ID = 2**31 - 1
USER_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


def secret_token() -> str:
    """256 random bits, safe in a URL, a header and a cookie."""
    return base64.urlsafe_b64encode(os.urandom(32))[:-1].decode()


def digest(secret: str) -> bytes:
    """What the database keeps of a secret that is only ever presented, never read back."""
    return hashlib.sha256(secret.encode()).digest()


def record_id() -> str:
    """Names one request or one log record: random, so that it tells nothing."""
    return os.urandom(8).hex()


def is_user_id(text: str) -> bool:
    """One spelling per user: no leading zeros, no signs, ASCII digits."""
    return USER_ID.fullmatch(text) is not None and int(text) < 2**63
