"""The application learns when the server starts and stops."""

from typing import Any

import pytest
import trio

from sso.serve.http1.lifespan import Lifespan


async def test_application_starts_and_stops_in_one_task() -> None:
    events: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        for phase in ("startup", "shutdown"):
            message = await receive()
            events.append(message["type"])
            await send({"type": f"lifespan.{phase}.complete"})

    lifespan = Lifespan(app)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lifespan.run)
        for phase in ("startup", "shutdown"):
            await lifespan.announce(phase)
            events.append(f"{phase} done")
    assert events == ["lifespan.startup", "startup done", "lifespan.shutdown", "shutdown done"]


async def test_failed_start_of_the_application_is_an_error() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "as planned"})
        await trio.sleep_forever()

    lifespan = Lifespan(app)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lifespan.run)
            with pytest.raises(RuntimeError, match="as planned"):
                await lifespan.announce("startup")
            nursery.cancel_scope.cancel()


async def test_application_that_ends_early_does_not_keep_the_server_waiting() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        pass

    lifespan = Lifespan(app)
    with trio.fail_after(60):
        await lifespan.run()
        with pytest.raises(trio.BrokenResourceError):
            await lifespan.announce("startup")
