"""JSON documents at addresses that others have chosen, such as the key set of a client.

They are fetched under the rules of outgoing requests (``outgoing_http``): https only, addresses are checked, redirects
are refused, time and size are limited. A document is kept in memory for as long as its ``Cache-Control`` says, within
bounds. Concurrent callers share a request, and a failure is remembered for a while, so that no caller can make this
service send many requests to another one.
"""

import re
from collections import OrderedDict
from typing import Any

import trio
from msgspec import Struct, field

from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingAnswer, OutgoingClient, UnusableAnswer
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.core.untrusted_json import read_json

MAX_DOCUMENTS = 1000  # in this worker
DEFAULT_AGE_S, MIN_AGE_S, MAX_AGE_S = 300, 60, 3600
MAX_STALE_S = 86400  # how long a document is used after it was fetched, while it cannot be fetched again
RETRY_S = 30  # after a failure, and before a document may be demanded anew
_JSON = re.compile(r"application/(?:[a-z0-9.-]+\+)?json(?: *;.*)?", re.ASCII | re.IGNORECASE)
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=([0-9]{1,9})(?:$|[\s,])", re.ASCII | re.IGNORECASE)


class DocumentUnavailable(Exception):
    """The document cannot be fetched, or is not a JSON object. The text says why."""


class FetchedDocument(Struct, frozen=True, eq=False, weakref=True):
    """It is the same object until the document is fetched again, so callers can keep what they made of it."""

    content: dict[str, Any]
    fetched: float  # by the clock of Trio; a caller that needs a newer one names it


class _KeptDocument(Struct):
    lock: trio.Lock = field(default_factory=trio.Lock)
    document: FetchedDocument | None = None
    tried: float = float("-inf")
    age_s: float = 0
    problem: str = ""  # of the last try; "" if it succeeded

    @property
    def fetched(self) -> float:
        return self.document.fetched if self.document else float("-inf")

    def is_usable(self, now: float, newer_than: float) -> bool:
        return newer_than < self.fetched and now - self.fetched <= MAX_STALE_S

    def is_current(self, now: float, newer_than: float) -> bool:
        """Returns whether it need not be fetched now, also because a request has just been made."""
        if self.problem or newer_than >= self.fetched:
            return now - self.tried < RETRY_S
        return now - self.fetched < self.age_s


class FetchedDocuments:
    def __init__(self, client: OutgoingClient, *, allow_http: bool) -> None:
        """``allow_http`` permits http for loopback addresses."""
        self._client = client
        self._allow_http = allow_http
        self._entries: OrderedDict[str, _KeptDocument] = OrderedDict()

    async def get(self, url: str, newer_than: float = float("-inf")) -> FetchedDocument:
        """Returns the document. Raises DocumentUnavailable.

        With ``newer_than``, a kept document that was fetched at that time or before is fetched anew, but not more often
        than every ``RETRY_S`` seconds: such as a key set that lacks a key. A caller waits for the request of
        another one only if the kept document is of no use.
        """
        if not is_outgoing_url(url, allow_http=self._allow_http):
            raise DocumentUnavailable(EXPECTED)
        entry = self._entry(url)
        now = trio.current_time()
        is_being_fetched = entry.lock.locked() and entry.is_usable(now, newer_than)
        if not entry.is_current(now, newer_than) and not is_being_fetched:
            async with entry.lock:
                if not entry.is_current(trio.current_time(), newer_than):
                    await self._fetch(url, entry)
        if entry.document is None or trio.current_time() - entry.fetched > MAX_STALE_S:
            raise DocumentUnavailable(entry.problem)
        return entry.document

    def _entry(self, url: str) -> _KeptDocument:
        entry = self._entries.setdefault(url, _KeptDocument())
        self._entries.move_to_end(url)
        if len(self._entries) > MAX_DOCUMENTS:
            self._entries.popitem(last=False)
        return entry

    async def _fetch(self, url: str, entry: _KeptDocument) -> None:
        started = trio.current_time()
        try:
            answer = await self._client.send("GET", url, {})
            entry.document = FetchedDocument(_read(answer), started)
        except (NoAnswer, UnusableAnswer, AddressRefused, DocumentUnavailable) as error:
            entry.problem, entry.tried = str(error), started
            return
        # Only now: a caller who asks meanwhile must wait for the answer.
        entry.problem, entry.tried = "", started
        match = _MAX_AGE.search(answer.headers.get("cache-control", ""))
        entry.age_s = min(max(int(match[1]), MIN_AGE_S), MAX_AGE_S) if match else DEFAULT_AGE_S


def _read(answer: OutgoingAnswer) -> dict[str, Any]:
    if answer.status != 200:
        raise DocumentUnavailable(f"expected the status 200, not {answer.status}")
    if not _JSON.fullmatch(answer.headers.get("content-type", "")):
        raise DocumentUnavailable("expected the content type application/json")
    try:
        document = read_json(answer.body)
    except ValueError as error:
        raise DocumentUnavailable(f"the document {error}") from None
    if not isinstance(document, dict):
        raise DocumentUnavailable("expected a JSON object")
    return document
