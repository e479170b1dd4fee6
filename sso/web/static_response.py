"""Responses that are the same for all clients: rendered once, and sent without Quart.

They have the headers, the log line and the metrics of every other response, and an ETag for clients that cache them.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from sso.core.ids import record_id
from sso.log import current_request_id
from sso.web.access_log import AccessLog
from sso.web.client_connection import SharedHeaders, send_response
from sso.web.request_tracing import started_span

_METHODS = frozenset({"GET", "HEAD"})


class StaticResponse:
    """The response of one path. ``current`` returns its content: the same object until the content changes."""

    def __init__(
        self,
        route: str,
        current: Callable[[], bytes],
        content_type: str,
        headers: Mapping[str, str],
        access_log: AccessLog,
    ) -> None:
        self._route = route
        self._raw_path = route.encode()
        self._current = current
        self._common_headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._type = (b"content-type", content_type.encode())
        self._access_log = access_log
        self._data: bytes | None = None
        self._etag = b""
        self._full_headers: SharedHeaders = ()
        self._not_modified_headers: SharedHeaders = ()

    def matches(self, scope: Any) -> bool:
        """Returns whether the request is a GET or HEAD of exactly this path, and not of a page of another origin."""
        if scope["type"] != "http" or scope["method"] not in _METHODS or scope.get("raw_path") != self._raw_path:
            return False
        return all(name != b"origin" for name, _ in scope["headers"])

    async def respond(self, scope: Any, send: Callable[[Any], Any]) -> None:
        started = time.perf_counter()
        request_id = record_id()
        if (tracing := self._access_log.tracing) is not None:
            tracing.start(scope, self._route, request_id)
        current_request_id.set(request_id)
        data = self._current()
        if data is not self._data:
            self._prepare(data)
        is_current = any(name == b"if-none-match" and self._matches_etag(value) for name, value in scope["headers"])
        status, headers = (304, self._not_modified_headers) if is_current else (200, self._full_headers)
        self._access_log.record(scope["method"], self._route, status, started, started_span(scope))
        own_headers = [(b"x-request-id", request_id.encode())]
        await send_response(scope, send, status, own_headers, b"" if is_current else data, headers)

    def _prepare(self, data: bytes) -> None:
        self._data = data
        self._etag = b'"%b"' % hashlib.sha256(data).hexdigest()[:32].encode()
        self._not_modified_headers = (*self._common_headers, (b"etag", self._etag))
        self._full_headers = (self._type, (b"content-length", b"%d" % len(data)), *self._not_modified_headers)

    def _matches_etag(self, value: bytes) -> bool:
        tags = (tag.strip(b" \t").removeprefix(b"W/") for tag in value.split(b","))
        return any(tag in (self._etag, b"*") for tag in tags)
