"""Writes the frames of a WebSocket (RFC 6455 section 5), and answers its opening handshake.

wsproto reads frames, but takes 6 us to write one, ten times as long, and a worker may write thousands of heartbeats per
second. Frames of a server have no mask, so there is not much to write.
"""

import base64
import hashlib
import struct
from collections.abc import Iterable

TEXT, BINARY, CLOSE, PING, PONG = 0x81, 0x82, 0x88, 0x89, 0x8A  # opcodes, with the bit of a final frame
EMPTY_PING = bytes((PING, 0))
MAX_CLOSE_REASON = 123
_KEY = b"sec-websocket-key"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(opcode: int, payload: bytes) -> bytes:
    length = len(payload)
    if length < 126:
        return bytes((opcode, length)) + payload
    if length < 1 << 16:
        return struct.pack("!BBH", opcode, 126, length) + payload
    return struct.pack("!BBQ", opcode, 127, length) + payload


def close_frame(code: int, reason: str = "") -> bytes:
    return frame(CLOSE, struct.pack("!H", code) + reason.encode()[:MAX_CLOSE_REASON])


def is_empty_pong(data: bytes) -> bool:
    """Whether the data is one frame: the usual answer to a ping without a payload."""
    return len(data) == 6 and data[0] == PONG and data[1] == 0x80  # two bytes and a mask


def accept_value(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The proof that the server has read the handshake; the head was checked before."""
    key = next(value for name, value in headers if name == _KEY)
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
