"""The service that runs with the data directory of a command: its management API through the operator's socket."""

import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import trio
from msgspec import Struct

from sso.cli.context import CommandFailure
from sso.core.operator_call import BrokenFrame, OperatorAnswer, OperatorCall, Progress, Respond, frame_of, read_frame
from sso.core.unix_socket import OPERATOR_SOCKETS, connect, peer_ids

T = TypeVar("T")

MAX_ANSWER = (1 << 32) - 1


class ServiceSocket(Struct, frozen=True):
    path: Path  # of its socket

    def run(self, work: Callable[[Respond], Awaitable[T]]) -> T:
        return trio.run(work, self.respond)

    async def respond(self, call: OperatorCall, progress: Progress) -> OperatorAnswer:
        """Sends one request. Raises CommandFailure if the service has ended meanwhile."""
        connection = _connect(self.path)
        if connection is None:
            raise CommandFailure("the service has stopped: try again")
        connection.setblocking(False)
        async with trio.SocketStream(trio.socket.from_stdlib_socket(connection)) as stream:
            try:
                await stream.send_all(frame_of(call))
                while True:
                    head, body = await read_frame(stream, MAX_ANSWER)
                    if "progress" not in head:
                        return OperatorAnswer(head["status"], head["etag"], body)
                    progress(*head["progress"])
            except (BrokenFrame, trio.BrokenResourceError):
                raise CommandFailure("the service ended the connection: see its log, and try again") from None


def find_service_socket(data_dir: Path) -> ServiceSocket | None:
    """Returns None if no service runs with this data directory, or none that this account may use."""
    for path in sorted(data_dir.glob(OPERATOR_SOCKETS)):
        if connection := _connect(path):
            connection.close()
            return ServiceSocket(path)
    return None


def _connect(path: Path) -> socket.socket | None:
    """Returns a connection to the service, or None.

    The program that listens must run under an account that owns the directory, or the account of this command: another
    one that may create files there must not get the passwords of new users.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(OSError):
        connect(connection, path)
        if peer_ids(connection)[1] in {0, os.geteuid(), path.parent.stat().st_uid}:
            return connection
    connection.close()
    return None
