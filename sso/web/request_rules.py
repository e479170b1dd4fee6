"""Rules that every request must meet before a route or a static response handles it.

They use the ASGI scope only, so they apply to requests and WebSockets, with either HTTP server.
"""

from typing import Any

from quart.globals import _cv_app
from quart.wrappers.base import BaseRequestWebsocket
from werkzeug.exceptions import MethodNotAllowed, NotFound

from sso.core.errors import ApiError
from sso.web.allowed_hosts import AllowedHosts

# Headers that identify a client, or the user that it acts for.
CREDENTIALS = {
    title.lower().encode(): title
    for title in (
        "Authorization",
        "Factor",
        "Ip",
        "Location",
        "Public-Key",
        "Request-Sign",
        "Service-Jwt",
        "Sign",
        "Signature",
    )
}
# List headers that are parsed before authentication, with their separators. An item takes up to 4 us.
LIST_SEPARATORS = {
    b"accept": b",",
    b"accept-language": b",",
    b"cookie": b";",
    b"if-match": b",",
    b"if-none-match": b",",
    b"range": b",",
}
MAX_ITEMS, MAX_PARAMETERS = 200, 100
ANY_HOST = frozenset({"/healthz", "/readyz", "/metrics"})  # health checks use addresses that are not configured


class WrongHost(ApiError):
    message = "Host: expected the host of the base URL, an address of this server, or a name in SSO_HOSTS"


class RepeatedHeader(ApiError):
    """Rejected, because parsers differ in which of several equal headers they use."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: expected one header, got several")


class TooManyItems(ApiError):
    def __init__(self, name: str, max_items: int) -> None:
        super().__init__(f"{name}: expected at most {max_items} items")


class RequestRules:
    def __init__(self, hosts: AllowedHosts) -> None:
        self._hosts = hosts

    def violation(self, scope: Any) -> ApiError | None:
        """Returns the error for the first rule that the request violates, or None."""
        host, credentials, items = b"", set(), 0
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name in CREDENTIALS:
                if name in credentials:
                    return RepeatedHeader(CREDENTIALS[name])
                credentials.add(name)
            elif name in LIST_SEPARATORS:
                items += value.count(LIST_SEPARATORS[name]) + 1
                if items > MAX_ITEMS:
                    return TooManyItems(name.decode().title(), MAX_ITEMS)
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
            return TooManyItems("query", MAX_PARAMETERS)
        if not self._hosts.allows(host, scope.get("server")) and scope["path"] not in ANY_HOST:
            return WrongHost()
        return None


def check_path(request: BaseRequestWebsocket) -> None:
    """Raises NotFound unless the path is spelled exactly as its route; only variable parts may be percent-encoded.

    The router accepts more: it decodes percent-encoding, including slashes, and drops slashes at the beginning. A proxy
    that protects a path by comparing it literally could be bypassed with such a spelling.
    """
    raw_path: bytes = request.scope["raw_path"]
    if b"%" not in raw_path and not raw_path.startswith(b"//"):
        return
    if b"%2f" in raw_path.lower() or not _is_literal(raw_path.decode("latin1"), _matched_rule(request)):
        raise NotFound


def _matched_rule(request: BaseRequestWebsocket) -> str:
    """Returns the rule that the path matches, with the method of the request or with another one."""
    error = request.routing_exception
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        router = _cv_app.get().app.create_url_adapter(request)
        assert router is not None
        return router.match(method=next(iter(error.valid_methods)), return_rule=True)[0].rule
    if request.url_rule is None:
        raise NotFound
    return request.url_rule.rule


def _is_literal(path: str, rule: str) -> bool:
    prefix, variable, remainder = rule.partition("<")
    return path.startswith(prefix) and path.endswith(remainder.rpartition(">")[2]) if variable else path == rule
