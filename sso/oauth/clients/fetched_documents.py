"""Documents at addresses that clients name, such as their keys. Each worker keeps what it has read.

Strangers can cause these requests, for example by an assertion with an unknown ``kid``. An address is therefore read by
one task at a time and at most once in ``RETRY_S``, whatever the result was. The number of requests, the time and the
size of an answer are limited, redirects are not followed, and internal hosts are not called.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import orjson
import structlog
import trio

from sso.config import Settings
from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingClient, OutgoingLimits, UnusableAnswer
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.core.receiver_addresses import ReceiverAddresses

LIMITS = OutgoingLimits(timeout_s=10.0, max_bytes=64 * 1024, max_requests=16)
FRESH_S = 600.0  # a document is not read again
RETRY_S = 10.0  # between two attempts to read an address
USABLE_S = 3600.0  # a document counts this long if it cannot be read again
MAX_DOCUMENTS = 1000

Content = TypeVar("Content")

log = structlog.get_logger()


class DocumentUnavailable(Exception):
    """The document cannot be read, or is not what was expected. The text contains no secret."""


@dataclass
class _Entry(Generic[Content]):
    content: Content | None = None
    read_at: float = float("-inf")
    tried_at: float = float("-inf")
    problem: str = ""  # of the last attempt
    lock: trio.Lock = field(default_factory=trio.Lock)


class FetchedDocuments(Generic[Content]):
    """``parse`` makes the content from the JSON of a document. It raises ValueError if the document is not usable."""

    def __init__(self, client: OutgoingClient, parse: Callable[[Any], Content], *, allow_http: bool) -> None:
        self._client = client
        self._allow_http = allow_http
        self._parse = parse
        self._entries: OrderedDict[str, _Entry[Content]] = OrderedDict()  # by URL, the least recently used first

    async def get(self, url: str, is_sufficient: Callable[[Content], bool] = lambda _: True) -> Content:
        """Returns the document. Raises DocumentUnavailable.

        An old document, and one that is not sufficient, is read again. If that fails, or was tried a moment ago, the
        old document is returned until it is too old.
        """
        entry = self._entry(url)
        if self._must_read(entry, is_sufficient) and not self._can_do_without(entry, is_sufficient):
            async with entry.lock:
                if self._must_read(entry, is_sufficient):  # another task may have read it meanwhile
                    await self._read(url, entry)
        if entry.content is None or trio.current_time() - entry.read_at > USABLE_S:
            raise DocumentUnavailable(entry.problem)
        return entry.content

    def _entry(self, url: str) -> _Entry[Content]:
        entry = self._entries.setdefault(url, _Entry())
        self._entries.move_to_end(url)
        if len(self._entries) > MAX_DOCUMENTS:
            self._entries.popitem(last=False)
        return entry

    def _must_read(self, entry: _Entry[Content], is_sufficient: Callable[[Content], bool]) -> bool:
        now = trio.current_time()
        if now - entry.tried_at < RETRY_S:
            return False
        return entry.content is None or now - entry.read_at > FRESH_S or not is_sufficient(entry.content)

    def _can_do_without(self, entry: _Entry[Content], is_sufficient: Callable[[Content], bool]) -> bool:
        """Returns whether another task is reading the document and this one need not wait for it."""
        is_usable = entry.content is not None and trio.current_time() - entry.read_at <= USABLE_S
        return entry.lock.locked() and is_usable and is_sufficient(entry.content)  # type: ignore[arg-type]

    async def _read(self, url: str, entry: _Entry[Content]) -> None:
        try:
            entry.content = await self._fetch(url)
            entry.read_at = trio.current_time()
        except DocumentUnavailable as error:
            entry.problem = str(error)
            log.warning("oauth.document_fetch_failed", host=urlsplit(url).netloc, reason=entry.problem)
        finally:
            entry.tried_at = trio.current_time()

    async def _fetch(self, url: str) -> Content:
        if not is_outgoing_url(url, allow_http=self._allow_http):
            raise DocumentUnavailable(EXPECTED)
        try:
            answer = await self._client.send("GET", url, {})
        except (NoAnswer, UnusableAnswer, AddressRefused) as error:
            raise DocumentUnavailable(str(error)) from None
        if answer.status != 200:
            raise DocumentUnavailable(f"expected status 200, got {answer.status}")
        try:
            return self._parse(orjson.loads(answer.body))
        except ValueError as error:
            raise DocumentUnavailable(f"expected another document: {error}") from None


def build_fetched_documents(
    settings: Settings, parse: Callable[[Any], Content], *, entered_by_administrators: bool = True
) -> FetchedDocuments[Content]:
    """Addresses that administrators entered may be in ``SSO_BACKCHANNEL_NETWORKS``; others are public ones."""
    networks = settings.backchannel_networks if entered_by_administrators else ()
    addresses = ReceiverAddresses(networks, loopback=settings.is_loopback)
    client = OutgoingClient(settings.backchannel_ca_file, LIMITS, addresses.allows)
    return FetchedDocuments(client, parse, allow_http=settings.is_loopback)
