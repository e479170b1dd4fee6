"""Addresses to listen on: ``host:port``, ``[v6]:port`` or ``unix:/path``."""

import ipaddress
import os
import re
import socket
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

# Host names may contain underscores: container networks use such names.
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?")
_LOOKS_V4 = re.compile(r"[0-9.]+")
_UNIX_PATH_MAX = 107  # bytes in sockaddr_un, without the closing NUL


class Bind(Struct, frozen=True):
    """One address to listen on: a host and port, or the path of a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""  # set for a unix socket only; host and port are then unused

    def __str__(self) -> str:
        return self.url_host() or f"unix:{self.path}"

    def url_host(self) -> str | None:
        """Returns the host part of a URL for this address; None for a unix socket."""
        if self.path:
            return None
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def local_url(self) -> str:
        """Returns a URL that reaches this address from this machine; for a unix socket, a URL of a proxy."""
        if self.path:
            return "http://localhost"
        here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - these are not bound here
        return f"http://{replace(self, host=here).url_host()}"

    def is_local(self) -> bool:
        """Whether only this machine can connect to it."""
        if self.path or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def bound(self, listener: socket.socket) -> "Bind":
        """Returns the address with the actual port of the listener, for port 0."""
        return self if self.path else replace(self, port=listener.getsockname()[1])


def parse_binds(text: str) -> tuple[Bind, ...]:
    """Returns the addresses of a comma-separated list. The path of a unix socket cannot contain a comma."""
    binds = tuple(parse_bind(part.strip()) for part in text.split(","))
    for index, bind in enumerate(binds):
        if bind in binds[:index] and (bind.path or bind.port):
            raise ValueError(f"{bind} is given twice")
    return binds


def public_bind(binds: Sequence[Bind]) -> Bind:
    """Returns the address that links name by default: the first one with a port, if there is any."""
    return next((bind for bind in binds if not bind.path), binds[0])


def parse_bind(text: str) -> Bind:
    """Returns the address of `host:port`, `[v6]:port` or `unix:/path`. Port 0 means any free port."""
    if text.startswith("unix:"):
        return Bind(path=_path(text, text.removeprefix("unix:")))
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        raise ValueError(f"{text!r}: expected host:port, [v6]:port or unix:/path")
    return Bind(host=_host(text, host), port=_port(text, port))


def _path(text: str, path: str) -> str:
    if not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise ValueError(f"{text!r}: a unix socket needs an absolute path, as in unix:/run/sso.sock")
    if len(os.fsencode(path)) > _UNIX_PATH_MAX:
        raise ValueError(f"{text!r}: the path is longer than {_UNIX_PATH_MAX} bytes")
    return path


def _host(text: str, host: str) -> str:
    if not host:
        raise ValueError(f"{text!r}: the host is missing; 0.0.0.0 or [::] stand for every address")
    if host.startswith("[") and host.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            raise ValueError(f"{text!r}: {host[1:-1]!r} is not an IPv6 address") from None
    if ":" in host and "/" not in host:
        raise ValueError(f"{text!r}: an IPv6 address goes in brackets, as in [::1]:8000")
    if _LOOKS_V4.fullmatch(host):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ValueError(f"{text!r}: {host!r} is not an IPv4 address") from None
    if not _NAME.fullmatch(host) or len(host) > 253:
        raise ValueError(f"{text!r}: {host!r} is not a host name")
    return host.lower()


def _port(text: str, port: str) -> int:
    # int() alone would also accept "+80", " 80", "8_0" and the digits of other scripts.
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(f"{text!r}: the port must be a number from 0 to 65535")
    return int(port)
