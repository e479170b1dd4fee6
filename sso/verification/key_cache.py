"""The public keys of the service, and when they are fetched again. Without input or output of its own."""

from typing import Any

from sso.client.errors import PlayerRefused
from sso.core.jwks import read_published_jwks
from sso.core.keys import PublicKey, UnusableKey

MAX_AGE_S = 300.0  # a key that was retired is forgotten after this time
UNKNOWN_KEY_S = 10.0  # unknown keys fetch the set again at most once in this time
RETRY_S = 5.0  # after a fetch that failed


class KeyCache:
    """Times are Unix seconds. An old set stays usable while the service is away."""

    def __init__(self) -> None:
        self._keys: dict[str, PublicKey] | None = None
        self._fetched_at = self._retry_at = self._unknown_at = 0.0

    def has(self, kid: str) -> bool:
        return self._keys is not None and kid in self._keys

    def must_fetch(self, kid: str, now: float) -> bool:
        """Whether the caller fetches the set now. The same question has another answer for the next caller."""
        if self._retry_at > now + RETRY_S or self._unknown_at > now + UNKNOWN_KEY_S:
            self._retry_at = self._unknown_at = 0.0  # the clock was set back
        is_old = self._keys is None or abs(now - self._fetched_at) >= MAX_AGE_S
        must_fetch = is_old and now >= self._retry_at
        if not must_fetch and self._keys is not None and kid not in self._keys and now >= self._unknown_at:
            self._unknown_at = now + UNKNOWN_KEY_S
            must_fetch = True
        if must_fetch:
            self._retry_at = now + RETRY_S
        return must_fetch

    def keep(self, key_set: dict[str, Any], now: float) -> None:
        """Takes a set that was fetched. What is no key set changes nothing."""
        try:
            keys = {kid: jwk.key for kid, jwk in read_published_jwks(key_set).items()}
        except UnusableKey:
            return
        self._keys, self._fetched_at, self._retry_at = keys, now, 0.0

    def find(self, kid: str) -> PublicKey:
        if self._keys is None:
            raise PlayerRefused("unavailable", "the keys of the service cannot be fetched")
        if kid not in self._keys:
            raise PlayerRefused("unknown_key", "the service has no such key")
        return self._keys[kid]
