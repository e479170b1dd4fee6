"""Verifies user JWTs without asking the service about each: with its public keys, which are kept in memory."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import httpx

from sso.client.call import ApiCall, read_body
from sso.client.clients import AsyncSsoClient, SsoClient
from sso.client.errors import ClientError
from sso.client.player_guard import VerifiedPlayer
from sso.verification.claims import check_jwt, read_kid
from sso.verification.key_cache import KeyCache

KEYS = ApiCall("GET", "/proxy/oauth/keys", read_body, authenticated=False)
# The set is fetched rarely, so no connection is kept; and not again by itself: the cache says when.
OPTIONS: dict[str, Any] = {"retries": 0, "timeout": 5.0, "limits": httpx.Limits(max_keepalive_connections=0)}
MAX_FETCH_S = 10.0  # a caller that is cancelled waits no longer


class _Verification:
    def __init__(self, url: str, *, issuer: str | None = None, clock: Callable[[], float] = time.time) -> None:
        """``issuer`` is the public address of the service, if it is reached at another one."""
        self._url = url.rstrip("/")
        self._issuer = issuer if issuer is not None else self._url
        self._clock = clock
        self._keys = KeyCache()

    def _check(self, jwt: str, kid: str, now: float, factor: str | None, address: str | None) -> VerifiedPlayer:
        return check_jwt(jwt, self._keys.find(kid), self._issuer, now, factor, address)


class PlayerVerifier(_Verification):
    """For ordinary programs. One object serves all threads."""

    def __init__(
        self, url: str, *, issuer: str | None = None, clock: Callable[[], float] = time.time, **options: Any
    ) -> None:
        """``options`` are those of ``httpx.Client``, such as ``verify``."""
        super().__init__(url, issuer=issuer, clock=clock)
        self._lock = threading.Lock()
        self._sso = SsoClient(self._url, **{**OPTIONS, **options})

    def verify(self, jwt: str, factor: str | None = None, address: str | None = None) -> VerifiedPlayer:
        """With a factor, the JWT must belong to that device; with the address of the player, a JWT that is bound to
        networks must be valid there. None does not ask. Raises PlayerRefused."""
        now, kid = self._clock(), read_kid(jwt)
        # One thread fetches. Others wait for it only if they cannot go on with the old set.
        if self._lock.acquire(blocking=not self._keys.has(kid)):
            try:
                if self._keys.must_fetch(kid, now):
                    with suppress(ClientError):
                        self._keys.keep(self._sso.send(KEYS), now)
            finally:
                self._lock.release()
        return self._check(jwt, kid, now, factor, address)

    def close(self) -> None:
        self._sso.close()


class AsyncPlayerVerifier(_Verification):
    """The same for asyncio and Trio."""

    def __init__(
        self, url: str, *, issuer: str | None = None, clock: Callable[[], float] = time.time, **options: Any
    ) -> None:
        """``options`` are those of ``httpx.AsyncClient``."""
        super().__init__(url, issuer=issuer, clock=clock)
        self._lock: anyio.Lock | None = None  # of the running event loop
        self._sso = AsyncSsoClient(self._url, **{**OPTIONS, **options})

    async def verify(self, jwt: str, factor: str | None = None, address: str | None = None) -> VerifiedPlayer:
        """With a factor, the JWT must belong to that device; with the address of the player, a JWT that is bound to
        networks must be valid there. None does not ask. Raises PlayerRefused."""
        now, kid = self._clock(), read_kid(jwt)
        self._lock = self._lock or anyio.Lock()
        if not (self._lock.locked() and self._keys.has(kid)):
            async with self._lock:
                if self._keys.must_fetch(kid, now):
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._fetch, now)
        return self._check(jwt, kid, now, factor, address)

    async def _fetch(self, now: float) -> None:
        """Goes on if the caller is cancelled, because others need the keys, too.

        A task of its own, because asyncio can cancel a task in spite of the shield.
        """
        with anyio.move_on_after(MAX_FETCH_S, shield=True), suppress(ClientError):
            self._keys.keep(await self._sso.send(KEYS), now)

    async def close(self) -> None:
        await self._sso.close()
