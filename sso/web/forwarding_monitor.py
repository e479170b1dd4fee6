"""Reports forwarding headers that are ignored because their sender is not a trusted proxy.

They usually show that a proxy is missing in SSO_TRUSTED_PROXIES; then the server mistakes the address of the proxy for
that of the client. (A client can also send such headers itself.)
"""

from typing import Any

import structlog
import trio

from sso.core.net import contains
from sso.db.database import Database
from sso.log import request_fields
from sso.web.client_address import LOCAL, TrustedProxies, UnknownAddress, peer_address
from sso.web.untrusted_proxy_store import record_untrusted_proxy

REPORT_EVERY_S = 60.0
# fmt: off
FORWARDING_HEADERS = frozenset({
    b"x-forwarded-for", b"forwarded", b"x-real-ip", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-port",
    b"x-forwarded-server", b"x-original-forwarded-for", b"x-client-ip", b"client-ip", b"true-client-ip",
    b"cf-connecting-ip", b"fastly-client-ip", b"x-cluster-client-ip", b"x-envoy-external-address", b"via",
})
# fmt: on
ADVICE = "if this peer is your proxy, name it in SSO_TRUSTED_PROXIES and the header that it sets in SSO_PROXY_HEADER"
log = structlog.get_logger()


def ignored_header(scope: Any, proxies: TrustedProxies) -> str | None:
    """Returns the first forwarding header of the request if it was ignored, or None."""
    for name, _ in scope["headers"]:
        if name in FORWARDING_HEADERS:
            return None if _is_trusted(scope, proxies) else name.decode()
    return None


def _is_trusted(scope: Any, proxies: TrustedProxies) -> bool:
    configured = proxies.header.encode()
    if not any(name == configured and value.strip() for name, value in scope["headers"]):
        return False
    try:
        return contains(proxies.networks, peer_address(_peer(scope)))
    except UnknownAddress:
        return False


def _peer(scope: Any) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


class ForwardingMonitor:
    """Reports ignored forwarding headers in the log and to ``sso doctor``, at most once per minute."""

    def __init__(self, proxies: TrustedProxies) -> None:
        self._proxies = proxies
        self._report: tuple[str, str, dict[str, str]] | None = None  # peer, header, fields of the request
        self._pending = trio.Event()

    def observe(self, scope: Any) -> None:
        if self._report is None and (header := ignored_header(scope, self._proxies)):
            self._report = (_peer(scope) or str(LOCAL), header, request_fields())
            self._pending.set()

    async def run(self, database: Database, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await self._pending.wait()
            assert self._report is not None
            peer, header, origin = self._report
            if await record_untrusted_proxy(database, peer, header):
                log.warning("proxy.forwarding_header_ignored", peer=peer, header=header, advice=ADVICE, **origin)
            await trio.sleep(REPORT_EVERY_S)
            self._report, self._pending = None, trio.Event()
