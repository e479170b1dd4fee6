"""Requests to providers. Time and size of an answer are limited, certificates are verified, redirects not followed.

They go to public addresses and to ``SSO_UPSTREAM_NETWORKS``: a discovery document must not direct the secret of a
client, or any other request, to an internal host.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingClient, OutgoingLimits, UnusableAnswer
from sso.core.outgoing_url import is_outgoing_url
from sso.core.receiver_addresses import ReceiverAddresses
from sso.core.untrusted_json import read_json
from sso.upstream.errors import InvalidAnswer, ProviderUnavailable

LIMITS = OutgoingLimits(timeout_s=10.0, max_bytes=256 * 1024, max_requests=32)
# Stores have requests of their own, so that a slow store does not delay sign-ins with a browser.
STORE_LIMITS = OutgoingLimits(timeout_s=8.0, max_bytes=64 * 1024, max_requests=64)


class ProviderAnswer(Struct, frozen=True):
    url: str
    status: int
    body: bytes

    def json(self) -> dict[str, Any]:
        """Returns the JSON object of the answer. Raises InvalidAnswer if it is not one."""
        try:
            value = read_json(self.body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise InvalidAnswer(f"{self.url}: expected a JSON object, status {self.status}")
        return value


class ProviderClient:
    def __init__(
        self,
        ca_file: Path | None,
        addresses: ReceiverAddresses,
        *,
        allow_http: bool,
        limits: OutgoingLimits = LIMITS,
    ) -> None:
        self._client = OutgoingClient(ca_file, limits, addresses.allows)
        self._allow_http = allow_http

    async def get(
        self, url: str, headers: Mapping[str, str] | None = None, query: Mapping[str, str] | None = None
    ) -> ProviderAnswer:
        """``query`` may have secrets: unlike the URL, it is in no error."""
        return await self._send("GET", url, headers or {}, **({"params": dict(query)} if query else {}))

    async def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> ProviderAnswer:
        return await self._send("POST", url, headers or {}, data=dict(form))

    def check_url(self, url: object, name: str) -> str:
        """Returns an address of a provider that may be used. Raises InvalidAnswer."""
        if not is_outgoing_url(url, allow_http=self._allow_http):
            raise InvalidAnswer(f"{name}: expected an https address")
        return str(url)

    async def _send(self, method: str, url: str, headers: Mapping[str, str], **content: Any) -> ProviderAnswer:
        self.check_url(url, "address")
        try:
            answer = await self._client.send(method, url, headers, **content)
        except NoAnswer as error:
            raise ProviderUnavailable(f"{url}: {error}") from None
        except AddressRefused as error:
            raise ProviderUnavailable(f"{url}: {error}; SSO_UPSTREAM_NETWORKS allows private networks") from None
        except UnusableAnswer as error:
            raise InvalidAnswer(f"{url}: {error}") from None
        if answer.status >= 500 or answer.status == 429:
            raise ProviderUnavailable(f"{url}: status {answer.status}")
        return ProviderAnswer(url, answer.status, answer.body)
