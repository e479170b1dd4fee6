"""The WebSocket of a game session: heartbeats, the stages of the login, and a close event with a reason (§6)."""

from contextlib import suppress
from typing import Any

import orjson
import structlog
import trio
from quart import Blueprint, websocket

from sso.bus.subscriptions import Rescans
from sso.core.errors import ServerBusy
from sso.core.rate_window import RateWindow
from sso.db.clock import DatabaseClock
from sso.db.errors import DatabaseError
from sso.gsid.errors import UnknownSession, Violation
from sso.gsid.session_request import RepeatedEvidence, parse_session_request
from sso.gsid.socket_registry import (
    FAILED,
    FLOOD,
    NOT_FOUND,
    TOO_LARGE,
    UNBOUND,
    SocketClient,
    SocketClose,
    new_socket_id,
)
from sso.gsid.topics import socket_topic
from sso.gsid.wiring import GameLogin
from sso.web.request import UnknownClient, client_address
from sso.web.websocket import MAX_MESSAGE_BYTES, client_has_flooded, client_has_left

MAX_MESSAGES, MESSAGES_WINDOW_S = 20, 5.0  # a client need not send any
log = structlog.get_logger()


def game_sockets(game: GameLogin) -> Blueprint:
    routes = Blueprint("game_sockets", __name__)

    @routes.websocket("/ws/gameSession/refresh/<gsid>")
    async def refresh(gsid: str) -> None:
        await websocket.accept()
        signals_of_session = game.bus.subscribe(socket_topic(gsid), Rescans.NEVER)
        with SocketClient(gsid, new_socket_id(game.bus.worker)) as client, signals_of_session as signals:
            try:
                if refusal := await attach(client):
                    await send(client, refusal, game.clock)
                    return
                with game.socket_registry.registered(client):
                    await serve(client, signals)
            except Exception:  # otherwise the client would see a normal close
                log.exception("gsid.socket_failed", gsid=gsid)
                await send(client, SocketClose(FAILED, "server error"), game.clock)

    async def attach(client: SocketClient) -> SocketClose | None:
        """Authenticates the client and attaches it to its session. Returns the close event if it is refused."""
        try:
            request = parse_session_request(
                client.gsid,
                websocket.headers,
                websocket.args.getlist("Location"),
                client_address(),
                signed=client.gsid.encode(),
            )
            await game.authenticator.authenticate(request, address_suffices=True)
            session = await game.socket_store.attach(client.gsid, client.socket_id)
            if session is None:  # the session has ended; its row has the reason
                client.send_changes(await game.socket_store.read(client.gsid))
            else:
                client.send_heartbeat(session)
                client.send_changes(session)
        except UnknownSession as error:
            return SocketClose(NOT_FOUND, error.message)
        except (Violation, RepeatedEvidence) as error:
            return SocketClose(UNBOUND, error.message)
        except ServerBusy as error:
            return SocketClose(FAILED, error.message)
        except UnknownClient:
            return SocketClose(UNBOUND, (await game.violations.unknown_address(client.gsid)).message)
        except DatabaseError:
            return SocketClose(FAILED, "server error")
        return None

    async def serve(client: SocketClient, signals: trio.MemoryReceiveChannel[None]) -> None:
        """Sends events until one of them closes the socket or the client disconnects."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(discard_messages, client)
                nursery.start_soon(follow_session, client, signals)
                async for event in client.events:
                    await send(client, event, game.clock)
                    if isinstance(event, SocketClose):
                        break
                nursery.cancel_scope.cancel()
        finally:
            # Only if the client disconnected: not if the server closed the socket, or if this worker stops.
            if client_has_left() and not client.closing:
                with trio.CancelScope(shield=True), suppress(DatabaseError):
                    await game.socket_store.cancel(client.gsid, client.socket_id)

    async def follow_session(client: SocketClient, signals: trio.MemoryReceiveChannel[None]) -> None:
        async for _ in signals:
            with suppress(DatabaseError):  # the next heartbeat reads the session again
                client.send_changes(await game.socket_store.read(client.gsid))

    return routes


async def discard_messages(client: SocketClient) -> None:
    """Reads and ignores messages: only a socket that is read shows that the client has disconnected."""
    messages = RateWindow(MAX_MESSAGES, MESSAGES_WINDOW_S)
    while True:
        message = await websocket.receive() or b""  # an empty message is None
        if len(message if isinstance(message, bytes) else message.encode()) > MAX_MESSAGE_BYTES:
            client.send(SocketClose(TOO_LARGE, "message too large"))
        if client_has_flooded() or messages.exceeded(trio.current_time()):
            client.send(SocketClose(FLOOD, "too many messages"))


async def send(client: SocketClient, event: dict[str, Any] | SocketClose, clock: DatabaseClock) -> None:
    if isinstance(event, SocketClose):
        body = {"event": "close", "status": "ERROR" if event.error else "OK", "error": event.error, "gsid": client.gsid}
        await websocket.send(orjson.dumps({**body, "ts": int(clock.now())}).decode())
        await websocket.close(event.code)
    else:
        await websocket.send(orjson.dumps(event).decode())
