"""A WebSocket of hypercorn's with limits for what a client sends.

Hypercorn limits messages, but not fragments without end, pings and pongs, or the number of them; and
it closes over the head of the application, which then cannot say why. Here the application is told, and closes.
"""

from contextlib import suppress
from typing import Any

import trio
from hypercorn.protocol.events import Body, Data, Event, StreamClosed
from hypercorn.protocol.ws_stream import FrameTooLargeError, WSStream
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Message, Ping

from sso.core.rate_window import RateWindow
from sso.web.websocket import CLIENT_FLOODED, MAX_MESSAGE_BYTES

MAX_FRAMES, FRAMES_S = 100, 5.0  # of any kind, also empty ones


class HypercornWebSocket(WSStream):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._frames = RateWindow(MAX_FRAMES, FRAMES_S)
        self._message_bytes = 0
        self._refused = False  # the application closes it; until then nothing more is read from it

    async def handle(self, event: Event) -> None:
        if self._refused and isinstance(event, Body | Data):
            return  # not even parsed: that takes 10 us for each frame
        await super().handle(event)

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if isinstance(event, CloseConnection):
                if self.connection.state is ConnectionState.REMOTE_CLOSING:
                    await self._send_wsproto_event(event.response())
                await self.send(StreamClosed(stream_id=self.stream_id))
            elif getattr(event, "frame_finished", True) and self._frames.exceeded(trio.current_time()):
                await self._refuse_flood()
            elif isinstance(event, Message):
                await self._take(event)
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())
            if self._refused:
                break  # frames are parsed as this loop asks for them

    async def _take(self, event: Message[Any]) -> None:
        """A message that grows beyond the limit is passed on unfinished: the application sees that it is too large."""
        self._message_bytes += len(event.data.encode() if isinstance(event.data, str) else event.data)
        self._refused = self._message_bytes > MAX_MESSAGE_BYTES
        with suppress(FrameTooLargeError):  # its own limit is wider
            self.buffer.extend(event)
        if event.message_finished or self._refused:
            await self._tell(self.buffer.to_message())
            self.buffer.clear()
            self._message_bytes = 0

    async def _refuse_flood(self) -> None:
        self._refused = True
        self.scope["extensions"][CLIENT_FLOODED] = {}
        await self._tell({"type": "websocket.receive", "bytes": b"", "text": None})

    async def _tell(self, message: dict[str, Any]) -> None:
        assert self.app_put is not None  # events come after the handshake
        await self.app_put(message)
