"""Requests to other servers. Time and size of an answer are limited, certificates verified, redirects not followed."""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from sso.core.net import Address
from sso.core.outgoing_answer import AddressRefused, NoAnswer, OutgoingAnswer, OutgoingLimits, UnusableAnswer

if TYPE_CHECKING:
    from sso.core.httpx_client import HttpxClient

__all__ = ["AddressRefused", "NoAnswer", "OutgoingAnswer", "OutgoingClient", "OutgoingLimits", "UnusableAnswer"]


class OutgoingClient:
    """``is_allowed`` decides to which addresses it connects.

    It imports httpx for its first request, in a thread: many services send none, and would start later for it.
    """

    def __init__(self, ca_file: Path | None, limits: OutgoingLimits, is_allowed: Callable[[Address], bool]) -> None:
        self._ca_file = ca_file
        self._limits = limits
        self._is_allowed = is_allowed
        self._client: HttpxClient | None = None

    async def send(self, method: str, url: str, headers: Mapping[str, str], **content: Any) -> OutgoingAnswer:
        """Raises NoAnswer, UnusableAnswer or AddressRefused."""
        return await (await self._loaded()).send(method, url, headers, content)

    async def check_host(self, url: str) -> None:
        """Raises AddressRefused if the host has addresses now and none of them is allowed."""
        await (await self._loaded()).check_host(url)

    async def _loaded(self) -> "HttpxClient":
        if self._client is None:
            module = await trio.to_thread.run_sync(importlib.import_module, "sso.core.httpx_client")
            if self._client is None:  # another task may have waited for the same import
                self._client = module.HttpxClient(self._ca_file, self._limits, self._is_allowed)
        return self._client
