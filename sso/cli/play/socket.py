"""The WebSocket of a session: it receives the stages of the login and shows the service that the game is running.

It is optional. When the game closes it, the service answers a held poll with CANCELLED.
"""

import json
from collections.abc import Callable

import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, open_websocket_url

from sso.cli.play.client import RETRY_S, GameClient, GameSession

FINAL_CODES = {1000, 1008, 1009, 4403, 4404}  # no reconnection
CONNECT_TIMEOUT_S = 10


async def follow(client: GameClient, session: GameSession, ws_url: str, show: Callable[[str], None]) -> None:
    """Calls ``show`` with every stage of the login until the session ends. Reconnects after a lost connection."""
    url = f"{ws_url}/ws/gameSession/refresh/{session.gsid}"
    headers: list[tuple[bytes, bytes]] = []
    if client.key:
        headers.append((b"Request-Sign", client.key.sign(session.gsid.encode()).encode()))
    elif session.location:
        url += f"?{session.location}"
    while True:
        try:
            async with open_websocket_url(
                url, extra_headers=headers, connect_timeout=CONNECT_TIMEOUT_S, disconnect_timeout=1
            ) as socket:
                while True:
                    event = json.loads(await socket.get_message())
                    if event["event"] == "stage" and event["stage"]:
                        show(event["stage"])
        except ConnectionClosed as closed:
            if closed.reason and closed.reason.code in FINAL_CODES:
                return
        except ConnectionRejected:
            return  # a proxy does not support WebSockets
        except (HandshakeError, OSError, trio.TooSlowError):
            pass
        await trio.sleep(RETRY_S)
