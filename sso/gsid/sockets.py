"""The WebSocket of a game session: a heartbeat, the stages of the login, and a close that says why (§6)."""

import time
from contextlib import suppress
from typing import Any

import orjson
import structlog
import trio
from quart import Blueprint, websocket

from sso.core.errors import Busy
from sso.core.rate_window import RateWindow
from sso.db.errors import DatabaseError
from sso.gsid import session_request
from sso.gsid.errors import UnknownSession, Violation
from sso.gsid.socket_registry import FAILED, FLOOD, NOT_FOUND, TOO_LARGE, UNBOUND, SocketClient, SocketClose
from sso.gsid.wiring import GameLogin
from sso.web.request import UnknownClient, client_address
from sso.web.websocket import MAX_MESSAGE_BYTES, client_has_flooded, client_has_left

MAX_MESSAGES, MESSAGES_S = 20, 5.0  # nothing need be said on this socket
log = structlog.get_logger()


def game_sockets(game: GameLogin) -> Blueprint:
    routes = Blueprint("game_sockets", __name__)

    @routes.websocket("/ws/gameSession/refresh/<gsid>")
    async def refresh(gsid: str) -> None:
        await websocket.accept()
        with SocketClient(gsid) as line, game.wakeups.watch(f"socket:{gsid}", in_doubt=False) as signals:
            try:
                if refused := await attach(line):
                    await say(line, refused)
                    return
                with game.heartbeats.beating(line):
                    await speak(line, signals)
            except Exception:  # or it would be closed as if all were well
                log.exception("gsid.socket_failed", gsid=gsid)
                await say(line, SocketClose(FAILED, "server error"))

    async def attach(line: SocketClient) -> SocketClose | None:
        try:
            asked = session_request.collect(
                line.gsid,
                websocket.headers,
                websocket.args.getlist("Location"),
                client_address(),
                signed=line.gsid.encode(),
            )
            await game.admission.admit(asked, address_suffices=True)
            seen = await game.socket_store.attach(line.gsid, line.socket)
            if seen is None:  # it is over, one way or the other
                line.see(await game.socket_store.look(line.gsid))
            else:
                line.beat(seen)
                line.see(seen)
        except UnknownSession as error:
            return SocketClose(NOT_FOUND, error.message)
        except Violation as error:
            return SocketClose(UNBOUND, error.message)
        except session_request.RepeatedEvidence as error:
            return SocketClose(UNBOUND, error.message)
        except Busy as error:
            return SocketClose(FAILED, error.message)
        except UnknownClient:
            return SocketClose(UNBOUND, (await game.violations.nowhere(line.gsid)).message)
        except DatabaseError:
            return SocketClose(FAILED, "server error")
        return None

    async def speak(line: SocketClient, signals: trio.MemoryReceiveChannel[None]) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read, line)
                nursery.start_soon(look, line, signals)
                async for event in line.events:
                    await say(line, event)
                    if isinstance(event, SocketClose):
                        break
                nursery.cancel_scope.cancel()
        finally:
            # Ended by none of ours: neither told to close, nor called off because this worker goes down.
            if client_has_left() and not line.over:
                with trio.CancelScope(shield=True), suppress(DatabaseError):
                    await game.socket_store.cancel(line.gsid, line.socket)

    async def look(line: SocketClient, signals: trio.MemoryReceiveChannel[None]) -> None:
        async for _ in signals:
            with suppress(DatabaseError):  # the next beat tells
                line.see(await game.socket_store.look(line.gsid))

    return routes


async def read(line: SocketClient) -> None:
    """What a client says is of no interest, but must be read, or nobody would notice that it has gone."""
    messages = RateWindow(MAX_MESSAGES, MESSAGES_S)
    while True:
        message = await websocket.receive() or b""  # None is an empty one
        if len(message if isinstance(message, bytes) else message.encode()) > MAX_MESSAGE_BYTES:
            line.tell(SocketClose(TOO_LARGE, "message too large"))
        if client_has_flooded() or messages.exceeded(trio.current_time()):
            line.tell(SocketClose(FLOOD, "too many messages"))


async def say(line: SocketClient, event: dict[str, Any] | SocketClose) -> None:
    if isinstance(event, SocketClose):
        body = {"event": "close", "status": "ERROR" if event.error else "OK", "error": event.error, "gsid": line.gsid}
        await websocket.send(orjson.dumps({**body, "ts": int(time.time())}).decode())
        await websocket.close(event.code)
    else:
        await websocket.send(orjson.dumps(event).decode())
