"""Rules that every request must meet before a route or a prepared answer sees it.

They read the ASGI scope only, so they hold for requests and WebSockets alike, and for both HTTP servers.
"""

from typing import Any

from quart.globals import _cv_app
from quart.wrappers.base import BaseRequestWebsocket
from werkzeug.exceptions import MethodNotAllowed, NotFound

from sso.core.errors import ApiError
from sso.web.allowed_hosts import AllowedHosts

# Headers that show who a client is, or whom it speaks for.
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
# Lists that are read before anything is known of the sender, and what separates their items: an item takes up to 4 us.
LISTS = {b"cookie": b";", b"if-match": b",", b"if-none-match": b",", b"range": b","}
MAX_ITEMS, MAX_PARAMETERS = 200, 100
ANY_HOST = frozenset({"/healthz", "/readyz", "/metrics"})  # checks by address, from load balancers and the like


class WrongHost(ApiError):
    message = "Host: expected the host of the base URL, an address of this server, or a name in SSO_HOSTS"


class RepeatedHeader(ApiError):
    """Readers of a request differ in which one they take."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: expected one header, got several")


class TooMany(ApiError):
    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"{what}: expected at most {most} items")


class RequestRules:
    def __init__(self, hosts: AllowedHosts) -> None:
        self._hosts = hosts

    def problem(self, scope: Any) -> Exception | None:
        """Returns what is wrong with the head of the request, or None."""
        host, credentials, items = b"", set(), 0
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name in CREDENTIALS:
                if name in credentials:
                    return RepeatedHeader(CREDENTIALS[name])
                credentials.add(name)
            elif name in LISTS:
                items += value.count(LISTS[name]) + 1
                if items > MAX_ITEMS:
                    return TooMany(name.decode().title(), MAX_ITEMS)
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
            return TooMany("query", MAX_PARAMETERS)
        if not self._hosts.allows(host, scope.get("server")) and scope["path"] not in ANY_HOST:
            return WrongHost()
        return None


def check_path(request: BaseRequestWebsocket) -> None:
    """Raises NotFound unless the path is literally that of its route; only variable parts may be percent-encoded.

    A proxy may guard a path that it compares literally, and the router takes more: it decodes what is encoded, also a
    slash, and drops slashes at the beginning.
    """
    raw_path: bytes = request.scope["raw_path"]
    if b"%" not in raw_path and not raw_path.startswith(b"//"):
        return
    if b"%2f" in raw_path.lower() or not _is_literal(raw_path.decode("latin1"), _matched_rule(request)):
        raise NotFound


def _matched_rule(request: BaseRequestWebsocket) -> str:
    """The rule that the path matches, with this method or another."""
    error = request.routing_exception
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        router = _cv_app.get().app.create_url_adapter(request)
        assert router is not None
        return router.match(method=next(iter(error.valid_methods)), return_rule=True)[0].rule
    if request.url_rule is None:
        raise NotFound
    return request.url_rule.rule


def _is_literal(path: str, rule: str) -> bool:
    before, variable, rest = rule.partition("<")
    return path.startswith(before) and path.endswith(rest.rpartition(">")[2]) if variable else path == rule
