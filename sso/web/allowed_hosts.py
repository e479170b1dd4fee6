"""The accepted Host headers: the configured names and the addresses of this server.

With DNS rebinding, a page of another site can reach this server under the name of that site, and the browser treats our
responses as belonging to the site. So requests must name the server as the operator has configured it.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from sso.config import Settings
from sso.core.bind_address import parse_binds
from sso.core.net import contains, parse_address

LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
MAX_CACHED = 256
MAX_HOST = 255

_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?")
_LOOKS_LIKE_ADDRESS = re.compile(r"[0-9.]+")


class AllowedHosts:
    """Ports are not compared: behind a forwarded port, only the client knows the number."""

    def __init__(self, names: Iterable[str], *, any_address: bool = False) -> None:
        self._names = {_normalize(name) for name in names}
        self._any_address = any_address  # the server listens on every address of the machine
        self.accepted: set[bytes] = set()  # accepted header values

    @classmethod
    def from_settings(cls, settings: Settings) -> "AllowedHosts":
        bound = [bind.host for bind in parse_binds(settings.bind) if not bind.path]
        specific = [host for host in bound if host not in WILDCARDS]
        return cls(
            ("localhost", *settings.public_hosts, *specific, *settings.hosts), any_address=len(specific) < len(bound)
        )

    def allows(self, value: bytes, local: tuple[Any, ...] | None) -> bool:
        """``value``: the header; ``local``: the server's address of the connection, None for a Unix socket."""
        if value in self.accepted:
            return True
        host = _parse(value)
        if host is None:
            return False
        if host in self._names or _is_loopback(host):
            if len(self.accepted) < MAX_CACHED:
                self.accepted.add(value)
            return True
        return self._any_address and local is not None and host == _normalize(str(local[0]))


def _parse(value: bytes) -> str | None:
    """Returns the host without its port in normal form, or None if the header is malformed."""
    if len(value) > MAX_HOST:
        return None
    match = _HOST.fullmatch(value.decode("latin1").lower())
    if match is None:
        return None
    return _normalize(match["v6"]) if match["v6"] else match["name"]


def _normalize(host: str) -> str:
    """Returns one spelling for all spellings of an address."""
    host = host.strip("[]").lower()
    if ":" not in host:
        return host
    try:
        return str(parse_address(host))
    except ValueError:
        return host


def _is_loopback(host: str) -> bool:
    if ":" not in host and not _LOOKS_LIKE_ADDRESS.fullmatch(host):
        return False
    try:
        return contains(LOOPBACK, parse_address(host))
    except ValueError:
        return False
