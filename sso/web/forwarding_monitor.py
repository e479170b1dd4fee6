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
log = structlog.get_logger()


def advice_on(*, is_trusted: bool, header: str) -> str:
    """Returns what the operator can do about the headers of a peer that is, or is not, in SSO_TRUSTED_PROXIES."""
    if is_trusted:
        return f"it is a trusted proxy: let it set {header}, or name the header that it sets in SSO_PROXY_HEADER"
    return "if this peer is your proxy, name it in SSO_TRUSTED_PROXIES and the header that it sets in SSO_PROXY_HEADER"


def ignored_header(scope: Any, proxies: TrustedProxies) -> str | None:
    """Returns a forwarding header of the request if all of them were ignored, or None.

    It is the configured one if the request has it: once the peer is trusted, that header is used.
    """
    first = next((name for name, _ in scope["headers"] if name in FORWARDING_HEADERS), None)
    if first is None:
        return None
    configured = proxies.header.encode()
    has_configured = any(name == configured and value.strip() for name, value in scope["headers"])
    if has_configured:
        return None if _is_trusted_peer(scope, proxies) else configured.decode()
    return str(first.decode())


def _is_trusted_peer(scope: Any, proxies: TrustedProxies) -> bool:
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
        self._report: tuple[str, str, str, dict[str, str]] | None = None  # peer, header, advice, fields of the request
        self._pending = trio.Event()

    def observe(self, scope: Any) -> None:
        if self._report is None and (header := ignored_header(scope, self._proxies)):
            advice = advice_on(is_trusted=_is_trusted_peer(scope, self._proxies), header=self._proxies.header)
            self._report = (_peer(scope) or str(LOCAL), header, advice, request_fields())
            self._pending.set()

    async def run(self, database: Database, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await self._pending.wait()
            assert self._report is not None
            peer, header, advice, origin = self._report
            if await record_untrusted_proxy(database, peer, header):
                log.warning("proxy.forwarding_header_ignored", peer=peer, header=header, advice=advice, **origin)
            await trio.sleep(REPORT_EVERY_S)
            self._report, self._pending = None, trio.Event()
