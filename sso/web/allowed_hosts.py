"""Which Host headers are accepted: the names and addresses of this server, and no others.

A page of another site can reach this server under its own name (DNS rebinding); browsers then take what it answers for
that site's own. So a request must name the server as the operator does.
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
MAX_REMEMBERED = 256
MAX_HOST = 255

_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?")
_LOOKS_LIKE_ADDRESS = re.compile(r"[0-9.]+")


class AllowedHosts:
    """Ports are not compared: a forwarded port is known to the client only."""

    def __init__(self, names: Iterable[str], *, any_address: bool = False) -> None:
        self._names = {_normal(name) for name in names}
        self._any_address = any_address  # the server listens on every address of the machine
        self.remembered: set[bytes] = set()  # header values that were accepted

    @classmethod
    def of(cls, settings: Settings) -> "AllowedHosts":
        bound = [bind.host for bind in parse_binds(settings.bind) if not bind.path]
        fixed = [host for host in bound if host not in WILDCARDS]
        return cls(("localhost", *settings.public_hosts, *fixed, *settings.hosts), any_address=len(fixed) < len(bound))

    def allows(self, value: bytes, local: tuple[Any, ...] | None) -> bool:
        """``value``: the header; ``local``: the server's end of the connection, None for a Unix socket."""
        if value in self.remembered:
            return True
        host = _read(value)
        if host is None:
            return False
        if host in self._names or _is_loopback(host):
            if len(self.remembered) < MAX_REMEMBERED:
                self.remembered.add(value)
            return True
        return self._any_address and local is not None and host == _normal(str(local[0]))


def _read(value: bytes) -> str | None:
    """The host without its port, in normal form."""
    if len(value) > MAX_HOST:
        return None
    match = _HOST.fullmatch(value.decode("latin1").lower())
    if match is None:
        return None
    return _normal(match["v6"]) if match["v6"] else match["name"]


def _normal(host: str) -> str:
    """Addresses can be written in several ways."""
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
