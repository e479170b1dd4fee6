"""The opening handshake of a WebSocket."""

WEBSOCKET_KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


UPGRADE = (
    b"GET /s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    + WEBSOCKET_KEY
    + b"Sec-WebSocket-Version: 13\r\n\r\n"
)
