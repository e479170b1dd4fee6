"""The claims of tokens whose signature was verified: clients send the same token many times.

A signature is a function of the token and the key, so a cached result is never stale. Times, users and the validity of
the key itself are checked in each request.
"""

import hashlib
from collections import OrderedDict
from typing import Any, NamedTuple

from sso.core.keys import PublicKey

MAX_TOKENS = 2048
MAX_TOKEN_LENGTH = 4096  # longer tokens, which are rare, are not cached


class _Verified(NamedTuple):
    key: PublicKey
    header_type: str
    claims: dict[str, Any]


class VerifiedSignatures:
    """Holds no tokens, only their digests. Tokens with a wrong signature are not cached: anybody can send many."""

    def __init__(self, max_tokens: int = MAX_TOKENS) -> None:
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()
        self._max_tokens = max_tokens

    def __len__(self) -> int:
        return len(self._verified)

    def find(self, token: str, key: PublicKey, header_type: str) -> dict[str, Any] | None:
        """A copy of the claims, if the token was verified with this key. The caller must not change nested values."""
        digest = hashlib.sha256(token.encode()).digest()
        verified = self._verified.get(digest)
        if verified is None or verified.header_type != header_type:
            return None
        if verified.key is not key and verified.key != key:
            return None
        self._verified.move_to_end(digest)
        return verified.claims.copy()

    def add(self, token: str, key: PublicKey, header_type: str, claims: dict[str, Any]) -> None:
        if len(token) > MAX_TOKEN_LENGTH:
            return
        self._verified[hashlib.sha256(token.encode()).digest()] = _Verified(key, header_type, claims.copy())
        if len(self._verified) > self._max_tokens:
            self._verified.popitem(last=False)
