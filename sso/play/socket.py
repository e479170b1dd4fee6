"""The WebSocket of a session: it shows how far the player is, and tells the service that the game is still there.

A game can do without it. While it is open the service knows that somebody waits; when the game closes it, a poll that
is being held is answered CANCELLED.
"""

import json
from collections.abc import Callable

import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, open_websocket_url

from sso.play.client import PAUSE_S, GameClient, GameSession

FINAL = {1000, 1008, 1009, 4403, 4404}  # done, or of no use to try again
CONNECT_S = 10


async def follow(client: GameClient, session: GameSession, ws_url: str, show: Callable[[str], None]) -> None:
    """Call ``show`` with every stage of the login, until the session is over. A lost connection is opened again."""
    url = f"{ws_url}/ws/gameSession/refresh/{session.gsid}"
    headers: list[tuple[bytes, bytes]] = []
    if client.key:
        headers.append((b"Request-Sign", client.key.sign(session.gsid.encode()).encode()))
    elif session.location:
        url += f"?{session.location}"
    while True:
        try:
            async with open_websocket_url(
                url, extra_headers=headers, connect_timeout=CONNECT_S, disconnect_timeout=1
            ) as socket:
                while True:
                    event = json.loads(await socket.get_message())
                    if event["event"] == "stage" and event["stage"]:
                        show(event["stage"])
        except ConnectionClosed as closed:
            if closed.reason and closed.reason.code in FINAL:
                return
        except ConnectionRejected:
            return  # there is something in between that knows no WebSockets
        except (HandshakeError, OSError, trio.TooSlowError):
            pass
        await trio.sleep(PAUSE_S)
