"""Whether a client has received what was sent to it."""

import socket

import trio
from trio.testing import wait_all_tasks_blocked

from sso.serve.acknowledgement import is_acknowledged

MORE_THAN_THE_RECEIVER_TAKES = 600_000


async def test_socket_that_is_closed_meanwhile_ends_the_wait() -> None:
    """Otherwise the handler would never learn the outcome, and its claim on a login would be renewed for ever."""
    outcomes: list[bool] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MORE_THAN_THE_RECEIVER_TAKES)
        server.setblocking(False)
        server.send(bytes(MORE_THAN_THE_RECEIVER_TAKES))

        async def wait() -> None:
            outcomes.append(await is_acknowledged(server, may_read=False))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            server.close()
    assert outcomes == [True]  # the kernel still sends what was written
