"""Serving through hypercorn. Whatever serves has this one shape: :func:`serve`."""

import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config, Sockets
from hypercorn.trio.run import worker_serve

KEEP_ALIVE_S = 75
HEADER_MOST = 32 * 1024
DRAIN_S = 7.0  # for requests in flight, of the supervisor's 9
CLOSE_AFTER_S = 0.05  # once accepting has stopped


async def serve(app: Any, sockets: Sequence[socket.socket], stop: trio.Event, ready: Callable[[], None]) -> None:
    """Answer requests until ``stop`` is set; then take no more, finish those in flight, and return."""
    config = Config()
    config.include_server_header = False
    config.keep_alive_timeout = KEEP_ALIVE_S
    config.graceful_timeout = DRAIN_S
    config.h11_max_incomplete_size = HEADER_MOST
    config.errorlog = logging.getLogger("hypercorn.error")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_close_when, stop, sockets)
        await nursery.start(
            partial(
                worker_serve,
                ASGIWrapper(app),
                config,
                sockets=Sockets([], list(sockets), []),
                shutdown_trigger=stop.wait,
            )
        )
        ready()


async def _close_when(stop: trio.Event, sockets: Sequence[socket.socket]) -> None:
    """A socket that stays open would go on taking connections that nobody answers."""
    await stop.wait()
    await trio.sleep(CLOSE_AFTER_S)
    for listener in sockets:
        listener.close()
