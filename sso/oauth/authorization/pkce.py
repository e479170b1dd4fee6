"""PKCE with the method S256 (RFC 7636)."""

import base64
import hashlib
import re

VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)


def code_challenge(verifier: str) -> str | None:
    """Returns the S256 challenge of a verifier: None without one, "" if it is malformed, which matches no code.

    A verifier for a code without a challenge does not match either: an attacker may have removed the challenge from
    the authorization request.
    """
    if not verifier:
        return None
    if not VERIFIER.fullmatch(verifier):
        return ""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
