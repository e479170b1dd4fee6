"""The operator's socket: a Unix socket in the data directory at which commands reach the management API.

A command that connects has every right. So only the account of the service may open the file, and the kernel says which
account a connection comes from. The socket has no connection to the servers of SSO_BIND: it has its
own protocol, and the application that serves HTTP does not know the operator.
"""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog
import trio

from sso.core.operator_call import BrokenFrame, ConnectionClosed, OperatorCall, Respond, frame, frame_of, read_frame
from sso.core.unix_socket import OPERATOR_SOCKETS, connect, listen_privately, peer_ids
from sso.serve.server_limits import ServerLimits

MAX_BODY = 16 << 20
REQUEST_S = 10.0  # for a request to arrive
DRAIN_S = ServerLimits().drain_s  # for requests in progress, when the service stops
RETRY_S = 0.1
PROGRESS_QUEUE = 16
_log = structlog.get_logger()


@contextmanager
def operator_listener(data_dir: Path) -> Iterator[socket.socket | None]:
    """Yields the listening socket, and removes its file at the end. None if the directory cannot have one."""
    path = data_dir / OPERATOR_SOCKETS.replace("*", secrets.token_hex(4))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listen_privately(listener, path)
    except OSError as error:
        _log.warning("operator_socket.setup_failed", reason=f"{error.strerror}: {data_dir}")
        listener.close()
        yield None
        return
    listener.setblocking(False)
    _remove_stale_sockets(data_dir)
    try:
        yield listener
    finally:
        listener.close()
        with suppress(OSError):
            path.unlink()


def _remove_stale_sockets(data_dir: Path) -> None:
    """Removes the sockets of services that were killed."""
    for path in data_dir.glob(OPERATOR_SOCKETS):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.setblocking(False)  # with a full queue, connecting then fails with EAGAIN: a service is listening
            try:
                connect(probe, path)
            except ConnectionRefusedError:
                path.unlink()


async def serve_operator(listener: socket.socket, respond: Respond, stop: trio.Event) -> None:
    """Answers the requests of commands until ``stop`` is set, and then finishes those in progress.

    Requests that are not done after DRAIN_S are cancelled; the worker then ends their transactions, too.
    """
    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as accepting:
            accepting.start_soon(_accept, listener, connections, respond)
            await stop.wait()
            accepting.cancel_scope.cancel()
        listener.close()
        connections.cancel_scope.deadline = trio.current_time() + DRAIN_S


async def _accept(listener: socket.socket, connections: trio.Nursery, respond: Respond) -> None:
    while True:
        await trio.lowlevel.wait_readable(listener)
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # another worker was faster
            continue
        except OSError as error:  # no file descriptors are left
            _log.warning("operator_socket.accept_failed", reason=error.strerror)
            await trio.sleep(RETRY_S)
            continue
        pid, uid = peer_ids(connection)
        if uid in (0, os.geteuid()):
            connections.start_soon(_serve_connection, connection, respond)
        else:
            _log.warning("operator_socket.connection_refused", pid=pid, uid=uid)
            connection.close()


async def _serve_connection(connection: socket.socket, respond: Respond) -> None:
    """Answers one request. A command that is interrupted ends it."""
    connection.setblocking(False)
    async with trio.SocketStream(trio.socket.from_stdlib_socket(connection)) as stream:
        try:
            with trio.fail_after(REQUEST_S):
                head, body = await read_frame(stream, MAX_BODY)
            await _answer(stream, OperatorCall(**head, body=body), respond)
        except* (ConnectionClosed, trio.BrokenResourceError):
            pass  # the command has ended, or has only looked whether the service runs
        except* (BrokenFrame, TypeError, trio.TooSlowError) as errors:
            _log.warning("operator_socket.request_refused", reason=str(errors.exceptions[0]))


async def _answer(stream: trio.SocketStream, call: OperatorCall, respond: Respond) -> None:
    send_report, reports = trio.open_memory_channel[tuple[str, int, int]](PROGRESS_QUEUE)

    def progress(what: str, done: int, total: int) -> None:
        with suppress(trio.WouldBlock):
            send_report.send_nowait((what, done, total))

    async with trio.open_nursery() as waiting:
        waiting.start_soon(_cancel_on_disconnect, stream, waiting.cancel_scope)
        async with trio.open_nursery() as reporting:
            reporting.start_soon(_send_reports, stream, reports)
            with send_report:
                answer = await respond(call, progress)
        await stream.send_all(frame_of(answer))
        waiting.cancel_scope.cancel()


async def _send_reports(stream: trio.SocketStream, reports: "trio.MemoryReceiveChannel[tuple[str, int, int]]") -> None:
    async for report in reports:
        await stream.send_all(frame({"progress": report}))


async def _cancel_on_disconnect(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
    """Ends the request of a command that was interrupted: a command sends nothing after its request."""
    with suppress(trio.BrokenResourceError):
        await stream.receive_some(1)
    scope.cancel()
