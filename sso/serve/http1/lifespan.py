"""Announces the start and the stop to an ASGI application, which runs in a task of its own."""

from typing import Any

import trio

_ASGI = {"version": "3.0", "spec_version": "2.0"}


class Lifespan:
    def __init__(self, app: Any) -> None:
        self._app = app
        self._messages, self._receive = trio.open_memory_channel[dict[str, Any]](1)
        self._send, self._answers = trio.open_memory_channel[dict[str, Any]](1)

    async def run(self) -> None:
        with self._receive, self._send:  # if the application ends early, `announce` fails rather than wait
            await self._app({"type": "lifespan", "asgi": _ASGI, "state": {}}, self._receive.receive, self._send.send)

    async def announce(self, phase: str) -> None:
        """Sends ``startup`` or ``shutdown`` to the application, and waits for its answer."""
        await self._messages.send({"type": f"lifespan.{phase}"})
        answer = await self._answers.receive()
        if answer["type"] != f"lifespan.{phase}.complete":
            raise RuntimeError(f"the {phase} of the application failed: {answer.get('message', '')}")
