"""A WebSocket of hypercorn with limits for what a client may send.

Hypercorn limits the size of messages, but not the number of fragments, pings and pongs; and it closes the connection
itself, without a reason that the client can read. Here the application learns of the excess and closes the WebSocket.
"""

from contextlib import suppress
from typing import Any

import trio
from hypercorn.protocol.events import Body, Data, Event, StreamClosed
from hypercorn.protocol.ws_stream import FrameTooLargeError, WSStream
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Message, Ping

from sso.core.rate_window import RateWindow
from sso.serve.websocket_limits import FRAMES_S, MAX_FRAMES
from sso.web.websocket import CLIENT_FLOODED, MAX_MESSAGE_BYTES


class HypercornWebSocket(WSStream):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._frames = RateWindow(MAX_FRAMES, FRAMES_S)
        self._message_bytes = 0
        self._limit_exceeded = False  # the application closes the WebSocket; until then its frames are discarded

    async def handle(self, event: Event) -> None:
        if self._limit_exceeded and isinstance(event, Body | Data):
            return  # not even parsed: that takes 10 us per frame
        await super().handle(event)

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if isinstance(event, CloseConnection):
                if self.connection.state is ConnectionState.REMOTE_CLOSING:
                    await self._send_wsproto_event(event.response())
                await self.send(StreamClosed(stream_id=self.stream_id))
            elif getattr(event, "frame_finished", True) and self._frames.exceeded(trio.current_time()):
                await self._report_flood()
            elif isinstance(event, Message):
                await self._receive(event)
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())
            if self._limit_exceeded:
                break  # wsproto parses a frame when this loop asks for it

    async def _receive(self, event: Message[Any]) -> None:
        """Passes on a complete message, or an incomplete one that exceeds the limit, which the application checks."""
        self._message_bytes += len(event.data.encode() if isinstance(event.data, str) else event.data)
        self._limit_exceeded = self._message_bytes > MAX_MESSAGE_BYTES
        with suppress(FrameTooLargeError):  # hypercorn's own limit is larger
            self.buffer.extend(event)
        if event.message_finished or self._limit_exceeded:
            await self._pass_on(self.buffer.to_message())
            self.buffer.clear()
            self._message_bytes = 0

    async def _report_flood(self) -> None:
        self._limit_exceeded = True
        self.scope["extensions"][CLIENT_FLOODED] = {}
        await self._pass_on({"type": "websocket.receive", "bytes": b"", "text": None})

    async def _pass_on(self, message: dict[str, Any]) -> None:
        assert self.app_put is not None  # it is set by the handshake
        await self.app_put(message)
