"""Requests to providers. Time and size of an answer are limited, certificates are verified, redirects not followed."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import trio

from sso.upstream.addresses import is_provider_url
from sso.upstream.errors import InvalidAnswer, ProviderUnavailable

TIMEOUT_S = 10.0  # of the whole request
MAX_BYTES = 256 * 1024
MAX_REQUESTS = 32  # of this worker at the same time
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "sso"}


@dataclass(frozen=True)
class ProviderAnswer:
    url: str
    status: int
    body: bytes

    def json(self) -> dict[str, Any]:
        """Returns the JSON object of the answer. Raises InvalidAnswer if it is not one."""
        try:
            value = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise InvalidAnswer(f"{self.url}: expected a JSON object, status {self.status}")
        return value


class ProviderClient:
    def __init__(self, ca_file: Path | None, *, allow_http: bool) -> None:
        self._ca_file = ca_file
        self._allow_http = allow_http
        self._tls: ssl.SSLContext | None = None  # created when it is first needed, which takes some milliseconds
        self._limiter = trio.CapacityLimiter(MAX_REQUESTS)

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> ProviderAnswer:
        return await self._send("GET", url, headers or {})

    async def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> ProviderAnswer:
        return await self._send("POST", url, headers or {}, data=dict(form))

    def check_url(self, url: object, name: str) -> str:
        """Returns an address of a provider that may be used. Raises InvalidAnswer."""
        if not is_provider_url(url, allow_http=self._allow_http):
            raise InvalidAnswer(f"{name}: expected an https address")
        return str(url)

    async def _send(self, method: str, url: str, headers: Mapping[str, str], **content: Any) -> ProviderAnswer:
        self.check_url(url, "address")
        content["headers"] = {**_HEADERS, **headers}
        try:
            with trio.fail_after(TIMEOUT_S):
                async with self._limiter, self._open() as client, client.stream(method, url, **content) as response:
                    body = await _read(response)
        except trio.TooSlowError:
            raise ProviderUnavailable(f"{url}: no answer within {TIMEOUT_S:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise ProviderUnavailable(f"{url}: {type(error).__name__}") from None
        if response.status_code >= 500 or response.status_code == 429:
            raise ProviderUnavailable(f"{url}: status {response.status_code}")
        return ProviderAnswer(url, response.status_code, body)

    def _open(self) -> httpx.AsyncClient:
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=str(self._ca_file) if self._ca_file else None)
        return httpx.AsyncClient(verify=self._tls, timeout=TIMEOUT_S, follow_redirects=False, trust_env=False)


async def _read(response: httpx.Response) -> bytes:
    """Returns the body. A compressed one is refused, because it could become much larger than what was sent."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise InvalidAnswer(f"{response.url}: unexpected Content-Encoding")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            raise InvalidAnswer(f"{response.url}: more than {MAX_BYTES} bytes")
    return bytes(body)
