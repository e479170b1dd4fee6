"""The server under measurement: ``python -m scripts.benchmarks.http_server builtin|hypercorn bare|quart``.

Prints its port and serves until SIGTERM. ``/hold`` is held like a poll, until ``/release``.
"""

import signal
import socket
import sys
from typing import Any

import trio
from quart import Response, request

from sso.serve.http1.server import serve
from sso.serve.hypercorn_server import serve_with_hypercorn
from sso.serve.process_tuning import enable_garbage_collector, tune_process
from sso.serve.server_limits import ServerLimits
from sso.web.client_connection import ClientConnection, client_connection
from sso.web.deferred_response import DeferredResponse
from sso.web.fast_quart.app import FastQuart
from sso.web.response import reply

BODY = b'{"status":"OK"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]


async def bare(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})


def quart() -> FastQuart:
    app = FastQuart("bench")
    release = trio.Event()
    held = 0

    @app.get("/")
    async def constant() -> Response:
        return reply({"status": "OK"})

    @app.post("/hold")
    async def hold() -> Response:
        nonlocal held
        await request.get_data(cache=False)
        held += 1
        return DeferredResponse(released, client_connection())

    async def released(client_connection: ClientConnection) -> Response:
        with client_connection.cancel_on_disconnect():
            await release.wait()
        return reply({"status": "OK"})

    @app.get("/held")
    async def count_held() -> Response:
        return reply({"held": held})

    @app.get("/release")
    async def release_held() -> Response:
        release.set()
        return reply({"status": "OK"})

    return app


async def main(kind: str, what: str) -> None:
    enable_garbage_collector()
    tune_process()
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        listener.setblocking(False)
        stop = trio.Event()

        def ready() -> None:
            print(listener.getsockname()[1], flush=True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_on_signal, stop)
            app = bare if what == "bare" else quart()
            if kind == "hypercorn":
                await serve_with_hypercorn(app, [listener], stop, ready, ServerLimits())
            else:
                await serve(app, [listener], stop, ready)
            nursery.cancel_scope.cancel()


async def _stop_on_signal(stop: trio.Event) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            stop.set()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
