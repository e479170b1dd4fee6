"""Hands the listening sockets of a running service over to a new one (``sso serve --replace``).

A process of the running service waits at a Unix socket in the data directory, and sends copies of the listening sockets
to a process of the same account or of root. Both services then accept connections from the same queues, so none is lost
when one of them stops. When the new service is ready, it asks the old one at the same socket to stop.
"""

import json
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path

import structlog
from msgspec import Struct

from sso.core.bind_address import Bind, parse_bind
from sso.core.unix_socket import connect, listen_privately, peer_ids

MAX_SOCKETS = 64
MAX_MESSAGE = 1 << 16
TIMEOUT_S = 5.0
PATTERN = "serve-*.sock"
MAX_REQUEST = 64
STOPPING = b"stopping"
_log = structlog.get_logger()


class SharedFlag:
    """A flag in memory that forked processes share."""

    def __init__(self) -> None:
        self._memory = mmap(-1, 1)

    def set(self) -> None:
        self._memory[0] = 1

    def is_set(self) -> bool:
        return self._memory[0] != 0


class RunningService(Struct, frozen=True):
    """A running service, its Unix socket, and the listening sockets that it has sent."""

    pid: int
    path: Path
    listeners: Mapping[Bind, socket.socket]


# The running service


@contextmanager
def handover_path(data_dir: Path) -> Iterator[Path]:
    """The path of the Unix socket of this service; its file is removed at the end."""
    path = data_dir / f"serve-{secrets.token_hex(4)}.sock"
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink()


def offer_listeners(
    path: Path, listeners: Mapping[Bind, socket.socket], handed_over: SharedFlag, ready: Callable[[], None]
) -> None:
    """Sends the listeners to every new service that asks, and stops this service for it. Never returns."""
    # A descriptor, as the process id could belong to another process once the supervisor has ended.
    supervisor = os.pidfd_open(os.getppid())
    try:
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listen_privately(control, path)
    except OSError as error:
        _log.warning("handover.setup_failed", reason=f"{error.strerror}: {path.parent}")
        ready()
        while True:
            signal.pause()
    ready()
    while True:
        connection, _ = control.accept()
        with connection:
            try:
                _answer(connection, listeners, handed_over, supervisor)
            except OSError as error:
                _log.warning("handover.failed", reason=str(error))


def _answer(
    connection: socket.socket, listeners: Mapping[Bind, socket.socket], handed_over: SharedFlag, supervisor: int
) -> None:
    connection.settimeout(TIMEOUT_S)
    pid, uid = peer_ids(connection)
    if uid not in (0, os.geteuid()):
        _log.warning("handover.refused", pid=pid, uid=uid)
        return
    match connection.recv(MAX_REQUEST):
        case b"listeners":
            message = json.dumps({"pid": os.getppid(), "binds": [str(bind) for bind in listeners]})
            handed_over.set()  # first: from now on another process may have the sockets
            socket.send_fds(connection, [message.encode()], [listener.fileno() for listener in listeners.values()])
            _log.info("handover.listeners_sent", to=pid)
        case b"stop":
            _log.info("handover.stop_requested", by=pid)
            connection.send(STOPPING)
            signal.pidfd_send_signal(supervisor, signal.SIGTERM)
        case _:
            pass  # the client only checks whether a service runs


# The new service


def take_listeners(data_dir: Path) -> list[RunningService]:
    """Returns the services that run with this data directory, with copies of their listening sockets."""
    services = (_ask(path) for path in sorted(data_dir.glob(PATTERN)))
    return [service for service in services if service is not None]


def is_running(data_dir: Path) -> bool:
    """Whether a service that can be replaced runs with this data directory."""
    for path in data_dir.glob(PATTERN):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection, suppress(OSError):
            connect(connection, path)
            return True
    return False


def _ask(path: Path) -> RunningService | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connect(connection, path)
            connection.send(b"listeners")
            data, fds, _, _ = socket.recv_fds(connection, MAX_MESSAGE, MAX_SOCKETS)
        except ConnectionRefusedError:  # its service was killed
            with suppress(OSError):
                path.unlink()
            return None
        except OSError as error:
            _log.warning("handover.failed", reason=f"{error.strerror or error}: {path}")
            return None
    listeners = [socket.socket(fileno=fd) for fd in fds]
    if not data:
        return None  # refused: the service runs under another account
    try:
        message = json.loads(data)
        binds = map(parse_bind, message["binds"])
        return RunningService(message["pid"], path, dict(zip(binds, listeners, strict=True)))
    except (ValueError, KeyError, TypeError):  # another version of the program
        _log.warning("handover.failed", reason=f"the message from {path} cannot be read")
        return None


def stop_service(service: RunningService) -> bool:
    """Asks the service to stop as at SIGTERM. Returns False if it goes on, since it does not know the request."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connect(connection, service.path)
            connection.send(b"stop")
            return connection.recv(MAX_MESSAGE) == STOPPING
        except (FileNotFoundError, ConnectionRefusedError):
            return True  # it has stopped by itself
        except OSError as error:
            _log.warning("handover.failed", reason=f"{error.strerror or error}: {service.path}")
            return False
