"""Requests of the operator's commands to the management API, and how they pass through a Unix socket.

A frame has the lengths of its two parts, a JSON object and a body. A connection has one request; frames with progress
may come before the answer.
"""

import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import orjson
import trio
from msgspec import Struct, field
from msgspec.structs import asdict

Progress = Callable[[str, int, int], None]  # called with what is being done, the number done and the total
_LENGTHS = struct.Struct(">II")
MAX_HEAD = 1 << 20
_PIECE = 1 << 16


class OperatorCall(Struct, frozen=True):
    """A request to the management API. ``operator`` is the account that the audit trail names."""

    operator: str
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    if_match: str | None = None
    body: bytes = b""  # JSON


class OperatorAnswer(Struct, frozen=True):
    status: int
    etag: str | None = None
    body: bytes = b""  # JSON


Respond: TypeAlias = Callable[[OperatorCall, Progress], Awaitable[OperatorAnswer]]


class BrokenFrame(Exception):
    """The other end has closed the connection, or is not a program of this version."""


class ConnectionClosed(BrokenFrame):
    """The other end has closed the connection."""


def frame_of(message: OperatorCall | OperatorAnswer) -> bytes:
    head = asdict(message)
    body: bytes = head.pop("body")
    return frame(head, body)


def frame(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    encoded = orjson.dumps(head)
    return _LENGTHS.pack(len(encoded), len(body)) + encoded + body


async def read_frame(stream: trio.abc.ReceiveStream, max_body: int) -> tuple[dict[str, Any], bytes]:
    """Raises BrokenFrame."""
    head_length, body_length = _LENGTHS.unpack(await _read(stream, _LENGTHS.size))
    if head_length > MAX_HEAD or body_length > max_body:
        raise BrokenFrame("the message is too large")
    try:
        head = orjson.loads(await _read(stream, head_length))
    except ValueError:
        raise BrokenFrame("the message is not JSON") from None
    if not isinstance(head, dict):
        raise BrokenFrame("the message is not a JSON object")
    return head, await _read(stream, body_length)


async def _read(stream: trio.abc.ReceiveStream, length: int) -> bytes:
    read = bytearray()
    while len(read) < length:
        try:
            piece = await stream.receive_some(min(_PIECE, length - len(read)))
        except trio.BrokenResourceError:
            piece = b""
        if not piece:
            raise ConnectionClosed("the connection was closed")
        read += piece
    return bytes(read)
