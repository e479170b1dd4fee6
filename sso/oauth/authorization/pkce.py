"""PKCE with the method S256 (RFC 7636)."""

import base64
import hashlib
import hmac
import re

VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)


def verify_code_verifier(challenge: str | None, verifier: str) -> bool:
    """Returns whether the verifier matches the challenge of the authorization request.

    A verifier for a code without a challenge does not match: an attacker may have removed the challenge from the
    authorization request.
    """
    if challenge is None or not verifier:
        return challenge is None and not verifier
    expected = code_challenge(verifier)
    return expected is not None and hmac.compare_digest(expected.encode(), challenge.encode())


def code_challenge(verifier: str) -> str | None:
    """Returns the S256 challenge of a verifier, or None if the verifier is malformed."""
    if not VERIFIER.fullmatch(verifier):
        return None
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
