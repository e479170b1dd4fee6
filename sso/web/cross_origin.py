"""Cross-origin requests (CORS): pages of registered origins may read the responses of some endpoints.

Other origins get CORS headers at public paths only. Cookies are never sent along: no response allows credentials.
"""

from collections.abc import Awaitable, Callable, Mapping

from quart import Request
from werkzeug.datastructures import Headers

PREFLIGHT_S = 7200  # the longest time that browsers keep the response to a preflight request (Chromium)
_ALLOW_ORIGIN = "Access-Control-Allow-Origin"
_PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, DPoP, Factor, Idempotency-Key, MCP-Protocol-Version, "
    "Request-Sign",
    "Access-Control-Max-Age": str(PREFLIGHT_S),
}
_EXPOSED_HEADERS = {"Access-Control-Expose-Headers": "DPoP-Nonce, Location, Retry-After, WWW-Authenticate"}


OriginCheck = Callable[[str], Awaitable[bool]]


class CrossOriginAccess:
    def __init__(self, checks: Mapping[str, OriginCheck], public_paths: frozenset[str] = frozenset()) -> None:
        """``checks`` has for each path which origins it allows."""
        self._checks = checks
        self._public_paths = public_paths
        self.paths = public_paths.union(checks)

    async def headers(self, request: Request) -> Mapping[str, str] | None:
        """Returns the CORS headers of the response to a request to one of the ``paths``; None without ``Origin``."""
        origin = request.headers.get("Origin")
        if origin is None:  # a program
            return None
        is_public = request.path in self._public_paths
        if not is_public and not await self._checks[request.path](origin):
            return {}
        is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        return {
            _ALLOW_ORIGIN: "*" if is_public else origin,
            **(_PREFLIGHT_HEADERS if is_preflight else _EXPOSED_HEADERS),
        }


def add_headers(headers: Headers, cross_origin: Mapping[str, str]) -> None:
    """Adds the CORS headers to those of a response, which then depends on the origin."""
    headers.pop(_ALLOW_ORIGIN, None)
    headers.setdefault("Vary", "Origin")
    headers.extend(cross_origin)
