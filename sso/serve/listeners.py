"""Where to listen: reading the setting, and opening the sockets once for all workers."""

import errno
import ipaddress
import os
import re
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

# Names may hold an underscore: container networks give such names to their services.
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?")
_LOOKS_V4 = re.compile(r"[0-9.]+")
BACKLOG = 4096
_UNIX_PATH_MAX = 107  # bytes in sockaddr_un, without the closing NUL

# The group is meant for the reverse proxy; everybody else stays out, whatever the umask says.
_UNIX_MODE = 0o660

_REASONS = {
    errno.EADDRINUSE: "the address is already in use",
    errno.EADDRNOTAVAIL: "not an address of this machine",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EAFNOSUPPORT: "this machine does not speak that address family",
}


class BindError(Exception):
    """The address is well formed, but nothing can listen there. One line, meant for the operator."""


@dataclass(frozen=True)
class Bind:
    """One address to listen on: a host and port, or the path of a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""  # set for a unix socket only; host and port then say nothing

    def __str__(self) -> str:
        return self.url_host() or f"unix:{self.path}"

    def url_host(self) -> str | None:
        """The host part of a URL that leads here; a unix socket has none."""
        if self.path:
            return None
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def bound(self, listener: socket.socket) -> "Bind":
        """The same address with the port that was really taken, for port 0."""
        return self if self.path else replace(self, port=listener.getsockname()[1])


def parse_binds(text: str) -> tuple[Bind, ...]:
    """Several addresses separated by commas (so the path of a unix socket cannot hold one)."""
    binds = tuple(parse_bind(part.strip()) for part in text.split(","))
    for at, bind in enumerate(binds):
        if bind in binds[:at] and (bind.path or bind.port):
            raise ValueError(f"{bind} is given twice")
    return binds


def parse_bind(text: str) -> Bind:
    """`host:port`, `[v6]:port` or `unix:/path`. Port 0 means any free one."""
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
    # int() alone would also take "+80", " 80", "8_0" and the digits of other scripts.
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(f"{text!r}: the port must be a number from 0 to 65535")
    return int(port)


def listen(bind: Bind, backlog: int = BACKLOG) -> socket.socket:
    """A non-blocking socket that already listens. The kernel caps the backlog at net.core.somaxconn."""
    try:
        return _listen_unix(bind.path, backlog) if bind.path else _listen_tcp(bind, backlog)
    except socket.gaierror as error:
        raise BindError(f"cannot listen on {bind}: {bind.host!r} does not resolve ({error.strerror})") from error
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        raise BindError(f"cannot listen on {bind}: {reason}") from error


@contextmanager
def listening(binds: Sequence[Bind], backlog: int = BACKLOG) -> Iterator[tuple[socket.socket, ...]]:
    """The listeners of all addresses, or BindError and none of them; files of unix sockets are gone afterwards.

    Forked children never leave this block (they end in os._exit), so only the process that opened it tidies up.
    """
    listeners: list[socket.socket] = []
    files: list[tuple[str, int]] = []
    try:
        for bind in binds:
            listeners.append(listen(bind, backlog))
            if bind.path:
                files.append((bind.path, Path(bind.path).lstat().st_ino))
        yield tuple(listeners)
    finally:
        # Unlink before closing: while it still listens, no other server takes the file for a stale one.
        for path, inode in files:
            with suppress(OSError):
                if Path(path).lstat().st_ino == inode:
                    Path(path).unlink()
        for listener in listeners:
            listener.close()


def _listen_tcp(bind: Bind, backlog: int) -> socket.socket:
    found = socket.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A name such as localhost may have both kinds; one address means one socket, and IPv4 is what callers try at least.
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # its connections have it from here
        if family == socket.AF_INET6:
            # Otherwise [::]:80 and 0.0.0.0:80 would exclude each other, depending on a kernel setting.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(backlog)
    except BaseException:
        listener.close()
        raise
    return listener


def _listen_unix(path: str, backlog: int) -> socket.socket:
    _clear_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        # The umask and not a chmod afterwards: the file must not be open wider for even a moment.
        umask = os.umask(0o777 & ~_UNIX_MODE)
        try:
            listener.bind(path)
        finally:
            os.umask(umask)
        listener.listen(backlog)
    except BaseException:
        listener.close()
        raise
    return listener


def _clear_stale(path: str) -> None:
    """Remove the file a killed server left behind; anything else at that path is somebody's."""
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "a file that is not a socket is in the way")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a full backlog then answers EAGAIN at once, which is an answer too
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
        except FileNotFoundError:
            return
        except PermissionError:
            raise
        except OSError:
            pass
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
