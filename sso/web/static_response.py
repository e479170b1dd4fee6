"""Answers that are the same for everybody and asked for by everybody: made once, and given out before Quart.

The same headers, log line and count as any other answer, and an ETag, so that who has it need not get it again.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from sso.core.ids import record_id
from sso.web.access_log import AccessLog
from sso.web.client_connection import SharedHeaders, send_response

_METHODS = frozenset({"GET", "HEAD"})


class StaticResponse:
    """One address. What it shows may change: `current` gives the same object for as long as it has not."""

    def __init__(
        self, route: str, current: Callable[[], bytes], content_type: str, headers: Mapping[str, str], told: AccessLog
    ) -> None:
        self._route = route
        self._raw_path = route.encode()
        self._current = current
        self._always = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._type = (b"content-type", content_type.encode())
        self._told = told
        self._data: bytes | None = None
        self._etag = b""
        self._whole: SharedHeaders = ()
        self._unchanged: SharedHeaders = ()

    def answers(self, scope: Any) -> bool:
        """Whether the request is for this address, literally."""
        return scope["type"] == "http" and scope["method"] in _METHODS and scope.get("raw_path") == self._raw_path

    async def answer(self, scope: Any, send: Callable[[Any], Any]) -> None:
        started = time.perf_counter()
        data = self._current()
        if data is not self._data:
            self._prepare(data)
        known = any(name == b"if-none-match" and self._is_known(value) for name, value in scope["headers"])
        status, headers = (304, self._unchanged) if known else (200, self._whole)
        request_id = record_id()
        self._told.request(scope["method"], self._route, status, started, request=request_id)
        named = [(b"x-request-id", request_id.encode())]
        await send_response(scope, send, status, named, b"" if known else data, headers)

    def _prepare(self, data: bytes) -> None:
        self._data = data
        self._etag = b'"%b"' % hashlib.sha256(data).hexdigest()[:32].encode()
        self._unchanged = (*self._always, (b"etag", self._etag))
        self._whole = (self._type, (b"content-length", b"%d" % len(data)), *self._unchanged)

    def _is_known(self, value: bytes) -> bool:
        tags = (tag.strip(b" \t").removeprefix(b"W/") for tag in value.split(b","))
        return any(tag in (self._etag, b"*") for tag in tags)
