"""Game sessions for benchmarks, and the requests of a game."""

import uuid
from collections.abc import Sequence

import orjson

from scripts.benchmarks.http_clients import post_json
from tests.kit import postgres

POLL_PATH = "/proxy/api/gameSession/getGsidResult"
CLOSE_PATH = "/proxy/api/gameSession/closeGsid"
LIFETIME_S = 1200
SOCKET_PATH = "/ws/gameSession/refresh/"
PING, EMPTY_PONG = b"\x89\x00", b"\x8a\x80\0\0\0\0"
HEARTBEAT = b'"refresh"'  # a part of its text
# Registers all sessions at once, because registration is not measured.
_REGISTER = """
    INSERT INTO game_sessions (gsid, location, address, ends, expires)
    SELECT gsid, '', '127.0.0.1', now() + interval '{seconds} s', now() + interval '{seconds} s'
    FROM unnest(CAST('{{{gsids}}}' AS text[])) AS gsid
"""


def new_gsids(count: int) -> list[str]:
    return [str(uuid.uuid4()) for _ in range(count)]


def register(dsn: str, gsids: Sequence[str], seconds: int = LIFETIME_S) -> None:
    postgres.execute(dsn, _REGISTER.format(gsids=",".join(gsids), seconds=seconds))
    # Otherwise autovacuum would run during the measurement.
    postgres.execute(dsn, "VACUUM (ANALYZE) game_sessions")


def poll(gsid: str) -> bytes:
    return post_json(POLL_PATH, orjson.dumps({"gsid": gsid}))


def close(gsid: str) -> bytes:
    return post_json(CLOSE_PATH, orjson.dumps({"gsid": gsid, "status": "Error"}))


def handshake(gsid: str) -> bytes:
    """Opens a WebSocket."""
    return (
        f"GET {SOCKET_PATH}{gsid} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()
