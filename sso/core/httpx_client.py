"""Sends requests to other servers with httpx, for ``OutgoingClient``."""

import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import trio

from sso.core.net import Address, parse_address
from sso.core.outgoing_answer import AddressRefused, NoAnswer, OutgoingAnswer, OutgoingLimits, UnusableAnswer

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "sso"}


class HttpxClient:
    """The part of an OutgoingClient that needs httpx.

    A host name is resolved once, and the request goes to an address that was checked: the name of a host may have
    another address when it is resolved again.
    """

    def __init__(self, ca_file: Path | None, limits: OutgoingLimits, is_allowed: Callable[[Address], bool]) -> None:
        self._ca_file = ca_file
        self._limits = limits
        self._is_allowed = is_allowed
        self._tls: ssl.SSLContext | None = None  # created when it is first needed, which takes some milliseconds
        self._limiter = trio.CapacityLimiter(limits.max_requests)
        # A slow name server keeps a thread after the request has ended, so this client has threads of its own.
        self._lookups = trio.CapacityLimiter(limits.max_requests)

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: dict[str, Any]) -> OutgoingAnswer:
        timeout_s = self._limits.timeout_s
        content["headers"] = {**_HEADERS, **headers}
        try:
            with trio.fail_after(timeout_s):
                async with self._limiter, self._open() as client:
                    return await self._send_to_allowed_address(client, method, httpx.URL(url), content)
        except trio.TooSlowError:
            raise NoAnswer(f"no answer within {timeout_s:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise NoAnswer(type(error).__name__) from None

    async def check_host(self, url: str) -> None:
        with trio.move_on_after(self._limits.timeout_s / 2), suppress(OSError, httpx.InvalidURL, UnicodeError):
            await self._allowed_addresses(httpx.URL(url))

    async def _send_to_allowed_address(
        self, client: httpx.AsyncClient, method: str, url: httpx.URL, content: dict[str, Any]
    ) -> OutgoingAnswer:
        """Tries the allowed addresses of the host in turn until one accepts the connection."""
        content["headers"] |= {"Host": url.netloc.decode()}
        content["extensions"] = {"sni_hostname": url.host}  # the certificate must be for the name
        *others, last = await self._allowed_addresses(url)
        for address in others:
            try:
                return await self._exchange(client, method, url.copy_with(host=str(address)), content)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._exchange(client, method, url.copy_with(host=str(last)), content)

    async def _allowed_addresses(self, url: httpx.URL) -> list[Address]:
        found = await self._look_up(url.raw_host, url.port or 443)
        addresses = dict.fromkeys(_read_address(str(sockaddr[0])) for *_, sockaddr in found)
        allowed = [address for address in addresses if address is not None and self._is_allowed(address)]
        if not allowed:
            raise AddressRefused("the address of the host is not allowed")
        return allowed

    async def _look_up(self, host: bytes, port: int) -> list[Any]:
        """Returns the addresses of a host. Numeric ones need no thread."""
        try:
            return _addresses(host, port, socket.AI_NUMERICHOST)
        except socket.gaierror as error:
            if error.errno != socket.EAI_NONAME:
                raise
        return await trio.to_thread.run_sync(_addresses, host, port, limiter=self._lookups, abandon_on_cancel=True)

    async def _exchange(
        self, client: httpx.AsyncClient, method: str, url: httpx.URL, content: dict[str, Any]
    ) -> OutgoingAnswer:
        async with client.stream(method, url, **content) as response:
            body = await self._read(response)
            return OutgoingAnswer(
                response.status_code, body, {name.lower(): text for name, text in response.headers.items()}
            )

    async def _read(self, response: httpx.Response) -> bytes:
        """Returns the body. A compressed one is refused, because it could become much larger than what was sent."""
        max_bytes, statuses = self._limits.max_bytes, self._limits.read_statuses
        if not max_bytes or (statuses is not None and response.status_code not in statuses):
            return b""
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise UnusableAnswer("unexpected Content-Encoding")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > max_bytes:
                raise UnusableAnswer(f"more than {max_bytes} bytes")
        return bytes(body)

    def _open(self) -> httpx.AsyncClient:
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=str(self._ca_file) if self._ca_file else None)
        timeout = httpx.Timeout(self._limits.timeout_s, connect=self._limits.timeout_s / 2)
        return httpx.AsyncClient(verify=self._tls, timeout=timeout, follow_redirects=False, trust_env=False)


def _addresses(host: bytes, port: int, flags: int = 0) -> list[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)


def _read_address(text: str) -> Address | None:
    try:
        return parse_address(text)
    except ValueError:  # with a zone id
        return None
