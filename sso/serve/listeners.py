"""Opens the listening sockets, once for all workers."""

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sso.core.bind_address import Bind
from sso.core.errors import OperatorError

BACKLOG = 4096

# The group is for the reverse proxy; other accounts have no access, whatever the umask is.
_UNIX_MODE = 0o660

_REASONS = {
    errno.EADDRINUSE: "the address is already in use",
    errno.EADDRNOTAVAIL: "not an address of this machine",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EAFNOSUPPORT: "this machine does not support the address family",
}


class BindError(OperatorError):
    """The service cannot listen on a well-formed address. The text is one line for the operator."""


def listen(bind: Bind, backlog: int = BACKLOG) -> socket.socket:
    """Returns a non-blocking listening socket. The kernel limits the backlog to net.core.somaxconn."""
    try:
        return _listen_unix(bind.path, backlog) if bind.path else _listen_tcp(bind, backlog)
    except socket.gaierror as error:
        raise BindError(f"cannot listen on {bind}: {bind.host!r} does not resolve ({error.strerror})") from error
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        raise BindError(f"cannot listen on {bind}: {reason}") from error


@contextmanager
def listening(
    binds: Sequence[Bind],
    taken: Mapping[Bind, socket.socket] | None = None,
    is_shared: Callable[[], object] = lambda: False,
    backlog: int = BACKLOG,
) -> Iterator[tuple[socket.socket, ...]]:
    """Opens the listeners of all addresses, and removes the files of Unix sockets at the end.

    ``taken`` are listeners of a running service, which are used instead of new ones. If ``is_shared`` returns true at
    the end, another service may listen on the same sockets, and their files are removed only if none does.

    Raises BindError, with no listener left open. Forked children never leave this block (they end in os._exit), so only
    the process that opened it cleans up.
    """
    taken = taken or {}
    listeners: list[socket.socket] = []
    files: list[tuple[Path, int]] = []
    try:
        for bind in binds:
            listeners.append(taken[bind] if bind in taken else listen(bind, backlog))
            if bind.path:
                files.append((Path(bind.path), Path(bind.path).lstat().st_ino))
        yield tuple(listeners)
    finally:
        shared = taken or is_shared()
        if not shared:
            # Unlink before closing: while the socket still listens, no other server considers the file stale.
            _remove_files(files)
        for listener in listeners:
            listener.close()
        if shared:
            with suppress(PermissionError):
                _remove_files([(path, inode) for path, inode in files if not _is_served(path)])


def _remove_files(files: Iterable[tuple[Path, int]]) -> None:
    """Removes the files of Unix sockets, unless another server has put its own file there."""
    for path, inode in files:
        with suppress(OSError):
            if path.lstat().st_ino == inode:
                path.unlink()


def _listen_tcp(bind: Bind, backlog: int) -> socket.socket:
    candidates = socket.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A name such as localhost may have IPv4 and IPv6 addresses. One is used, and clients try IPv4 in any case.
    family, kind, protocol, _, address = min(candidates, key=lambda entry: entry[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit it
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
    _remove_stale_socket(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        # The umask rather than a later chmod: the file must never be accessible to others, not even for a moment.
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


def _remove_stale_socket(path: str) -> None:
    """Removes the socket that a killed server left behind. Raises OSError for anything else at that path."""
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "a file that is not a socket is in the way")
    if _is_served(Path(path)):
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    Path(path).unlink(missing_ok=True)


def _is_served(path: Path) -> bool:
    """Whether a server listens on a Unix socket. Raises PermissionError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # with a full backlog, connect then fails with EAGAIN: a server is listening
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except PermissionError:
            raise
        except OSError:
            pass
    return True
