"""The WebSocket of a game session: heartbeats, the stages of the login, and a close event with a reason (§6)."""

from contextlib import suppress
from functools import partial
from typing import Any

import orjson
import structlog
import trio
from quart import Blueprint, websocket

from sso.bus.subscriptions import Rescans
from sso.core.ban import Ban
from sso.core.errors import ServerBusy
from sso.db.errors import DatabaseError
from sso.gsid.errors import UnknownSession, Violation
from sso.gsid.model import gsid_or_empty
from sso.gsid.rate_limit import AddressKeys
from sso.gsid.session_request import RepeatedEvidence, SessionRequest, parse_session_request
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
from sso.gsid.socket_store import SocketSession
from sso.gsid.topics import socket_topic
from sso.gsid.wiring import GameLogin
from sso.web.request import UnknownClient, client_address
from sso.web.websocket import MAX_MESSAGE_BYTES, client_has_flooded, client_has_left, fast_websocket

log = structlog.get_logger()


def game_sockets(game: GameLogin) -> Blueprint:
    routes = Blueprint("game_sockets", __name__)

    @routes.websocket("/ws/gameSession/refresh/<gsid>")
    async def refresh(gsid: str) -> None:
        connection = fast_websocket()
        if connection:
            connection.cork()  # the response to the handshake is sent with the first event
        await websocket.accept()
        client = SocketClient(gsid, new_socket_id(game.bus.worker), connection)
        with game.bus.watch(socket_topic(gsid), Rescans.NEVER, client.signal):
            try:
                if refusal := await attach(client):
                    await send(client, refusal)
                else:
                    if connection:
                        await connection.uncork()
                    await serve(client)
            except Exception:  # otherwise the client would see a normal close
                log.exception("gsid.socket_failed", gsid=gsid)
                await send(client, SocketClose(FAILED, "server error"))

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
            session = await attach_with_address(client, request) if request.has_address_only else None
            if session is None:
                await game.authenticator.authenticate(request, address_suffices=True)
                session = await game.socket_store.attach(client.gsid, client.socket_id)
            if session is None:  # the session has ended; its row has the reason
                client.send_changes(await game.socket_store.read(client.gsid))
            else:
                client.send_heartbeat(session.snapshot.ts)
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

    async def attach_with_address(client: SocketClient, request: SessionRequest) -> SocketSession | None:
        """Authenticates and attaches the client in one statement. Returns None if the address is not enough."""
        address, early_poll_key = str(request.origin), AddressKeys.of(request.origin).early_polls
        return await game.socket_store.attach(gsid_or_empty(client.gsid), client.socket_id, address, early_poll_key)

    async def serve(client: SocketClient) -> None:
        """Sends events until one of them closes the socket or the client disconnects."""
        game.socket_registry.add(client)
        try:
            await send_queued(client)
            while not client.closing:
                await client.read_until_woken(partial(discard_messages, client))
                if client.session_changed:
                    client.session_changed = False
                    with suppress(DatabaseError):  # the next heartbeat reads the session again
                        client.send_changes(await game.socket_store.read(client.gsid))
                await send_queued(client)
            await send_queued(client)
        finally:
            game.socket_registry.remove(client)
            # Only if the client disconnected: not if the server closed the socket, or if this worker stops.
            if client_has_left() and not client.closing:
                with trio.CancelScope(shield=True), suppress(DatabaseError):
                    await game.socket_store.cancel(client.gsid, client.socket_id)
            client.closing = True  # a heartbeat may be under way

    async def send_queued(client: SocketClient) -> None:
        for event in client.take_queued():
            await send(client, event)

    async def send(client: SocketClient, event: dict[str, Any] | SocketClose) -> None:
        if not isinstance(event, SocketClose):
            await websocket.send(orjson.dumps(event).decode())
            return
        status = "ERROR" if event.error else "OK"
        body: dict[str, Any] = {"event": "close", "status": status, "error": event.error, "gsid": client.gsid}
        if event.ban:
            body["ban"] = Ban.from_json(dict(event.ban)).notice(game.appeal_url)
        connection = fast_websocket()
        if connection:
            connection.cork()
        await websocket.send(orjson.dumps({**body, "ts": int(game.clock.now())}).decode())
        await websocket.close(event.code)
        if connection:
            await connection.uncork()

    return routes


async def discard_messages(client: SocketClient) -> None:
    """Reads and ignores messages: only a socket that is read shows that the client has disconnected."""
    while True:
        message = await websocket.receive() or b""  # an empty message is None
        if len(message if isinstance(message, bytes) else message.encode()) > MAX_MESSAGE_BYTES:
            client.send(SocketClose(TOO_LARGE, "message too large"))
        if client_has_flooded() or client.has_sent_too_many():
            client.send(SocketClose(FLOOD, "too many messages"))
