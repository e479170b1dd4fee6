"""Unix sockets in the data directory: names that fit into a socket address, and the account at the other end."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The operator's sockets in a data directory, one for each running service.
OPERATOR_SOCKETS = "operator-*.sock"
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name of the same file that fits into a socket address, which has room for 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen_privately(listener: socket.socket, path: Path) -> None:
    """Creates the file of a socket that only its owner may connect to."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # left by a process that was killed
    # The umask rather than a later chmod: the file must never be accessible to others, not even for a moment.
    umask = os.umask(0o177)
    try:
        with short_path(path) as address:
            listener.bind(address)
    finally:
        os.umask(umask)
    listener.listen()


def connect(connection: socket.socket, path: Path) -> None:
    with short_path(path) as address:
        connection.connect(address)


def peer_ids(connection: socket.socket) -> tuple[int, int]:
    """Returns the process and the account at the other end, as the kernel knows them."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(credentials)
    return pid, uid
