"""Cross-origin requests (CORS): pages of registered origins may read the responses of some endpoints.

Other origins get no CORS headers at all. Cookies are never sent along: no response allows credentials.
"""

from collections.abc import Awaitable, Callable

from quart import Request, Response
from werkzeug.datastructures import Headers

PREFLIGHT_S = 7200  # the longest time that browsers keep the response to a preflight request (Chromium)
_ALLOW_ORIGIN = "Access-Control-Allow-Origin"
_PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, DPoP, Idempotency-Key",
    "Access-Control-Max-Age": str(PREFLIGHT_S),
}
_EXPOSED_HEADERS = {"Access-Control-Expose-Headers": "DPoP-Nonce, Retry-After, WWW-Authenticate"}


class CrossOriginAccess:
    def __init__(self, is_allowed: Callable[[str], Awaitable[bool]], paths: frozenset[str]) -> None:
        self._is_allowed = is_allowed
        self.paths = paths

    async def add_headers(self, request: Request, response: Response) -> None:
        """Adds the CORS headers to the response of one of the ``paths``. Programs send no ``Origin``."""
        origin = request.headers.get("Origin")
        if origin is None:
            return
        headers: Headers = response.headers
        headers.pop(_ALLOW_ORIGIN, None)
        headers.setdefault("Vary", "Origin")
        if not await self._is_allowed(origin):
            return
        headers[_ALLOW_ORIGIN] = origin
        is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        headers.extend(_PREFLIGHT_HEADERS if is_preflight else _EXPOSED_HEADERS)
