"""Requests for HTTP/2 without TLS."""

import h2.config
import h2.connection

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


SETTINGS = b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n"


UPGRADES = {
    "plain": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + SETTINGS,
    "without settings": b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    "without a connection token": b"Upgrade: h2c\r\n" + SETTINGS,
    "upper case": b"Connection: UPGRADE, HTTP2-SETTINGS\r\nUPGRADE: H2C\r\n" + SETTINGS,
    "listed after websocket": b"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n" + SETTINGS,
    "listed before websocket": b"Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n" + SETTINGS,
    "header after websocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n" + SETTINGS,
    "header before websocket": b"Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n" + SETTINGS,
    "two connection headers": b"Connection: Upgrade\r\nConnection: HTTP2-Settings\r\nUpgrade: h2c\r\n" + SETTINGS,
    "with a length of 0": b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n" + SETTINGS,
    "two settings": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + SETTINGS + SETTINGS,
    "h2 over TLS": b"Connection: Upgrade\r\nUpgrade: h2\r\n",
}


def get(more: bytes = b"", version: bytes = b"1.1") -> bytes:
    return b"GET / HTTP/" + version + b"\r\nHost: x\r\n" + more + b"\r\n"


def forged_request() -> bytes:
    """An HTTP/2 request that names another client address, for the stream after the upgraded one."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    pairs = [(":method", "GET"), (":path", "/"), (":authority", "x"), (":scheme", "http")]
    connection.send_headers(3, [*pairs, ("x-forwarded-for", "127.0.0.1")], end_stream=True)
    return connection.data_to_send()
