"""Decodes the framing of request bodies: a fixed length, or chunks."""

import re

from sso.serve.http1.head import CHUNKED
from sso.serve.http1.rejections import RequestRejected
from sso.serve.server_limits import ServerLimits

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(;[\t -~\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*")

MAX_CHUNKS_PER_CALL = 128  # so that one call does not block the event loop for long
# A chunk costs time however small it is: beyond this number, chunks must hold this many bytes on average.
MAX_SMALL_CHUNKS, SMALL_CHUNK_BYTES = 4096, 64
TRAILER_OVERHEAD_BYTES = 32  # counted for each trailer, in addition to its own bytes


class RequestBody:
    """Takes the bytes of one body from the bytes that a connection received."""

    __slots__ = ("_limits", "_size", "done")

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._size = 0
        self.done = False

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Returns the decoded part of the body in ``data``, and the bytes that were not consumed.

        The caller passes unconsumed bytes again, followed by what it receives next.
        """
        raise NotImplementedError

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._limits.max_body_bytes:
            raise RequestRejected(413, "the body is too long")


class FixedLengthBody(RequestBody):
    __slots__ = ("_remaining",)

    def __init__(self, limits: ServerLimits, length: int) -> None:
        super().__init__(limits)
        self._remaining = length

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        body, unconsumed = data[: self._remaining], data[self._remaining :]
        self._remaining -= len(body)
        self._count(len(body))
        self.done = self._remaining == 0
        return body, unconsumed


class ChunkedBody(RequestBody):
    """Chunk extensions and trailers are validated and limited, and otherwise ignored."""

    __slots__ = ("_chunks", "_extension_bytes", "_in_trailers", "_remaining", "_trailer_bytes")

    def __init__(self, limits: ServerLimits) -> None:
        super().__init__(limits)
        self._remaining = 0  # bytes of the current chunk, including the CR LF after it
        self._chunks = 0
        self._extension_bytes = 0
        self._trailer_bytes = 0
        self._in_trailers = False

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Decodes at most MAX_CHUNKS_PER_CALL chunks; the unconsumed bytes may then hold more of them."""
        pieces: list[bytes] = []
        position = 0
        last = self._chunks + MAX_CHUNKS_PER_CALL
        while not self.done and (self._chunks < last or self._remaining):
            if self._remaining:
                position, progressed = self._read_data(data, position, pieces)
            else:
                position, progressed = self._read_line(data, position)
            if not progressed:
                break
        return b"".join(pieces), data[position:]

    def _read_data(self, data: bytes, position: int, pieces: list[bytes]) -> tuple[int, bool]:
        if self._remaining > 2:
            piece = data[position : position + self._remaining - 2]
            pieces.append(piece)
            self._count(len(piece))
            self._remaining -= len(piece)
            return position + len(piece), bool(piece)
        if len(data) - position < 2:
            return position, False
        if data[position : position + 2] != b"\r\n":
            raise RequestRejected(400, "a chunk is longer than its size")
        self._remaining = 0
        return position + 2, True

    def _read_line(self, data: bytes, position: int) -> tuple[int, bool]:
        limits = self._limits
        max_bytes = limits.max_trailer_bytes if self._in_trailers else limits.max_chunk_line_bytes
        end = data.find(b"\n", position, position + max_bytes + 2)
        if end < 0:
            if len(data) - position > max_bytes:
                raise RequestRejected(400, "a line between chunks is too long")
            return position, False
        if end == position or data[end - 1] != 0x0D:
            raise RequestRejected(400, "a line does not end with CR LF")
        line = data[position : end - 1]
        if self._in_trailers:
            self._read_trailer(line)
        else:
            self._read_size(line)
        return end + 1, True

    def _read_size(self, line: bytes) -> None:
        match = _SIZE.fullmatch(line)
        if match is None:
            raise RequestRejected(400, "the size of a chunk is malformed")
        self._extension_bytes += len(line) - len(match[1])
        if self._extension_bytes > self._limits.max_extension_bytes:
            raise RequestRejected(400, "the chunks have too many extensions")
        self._chunks += 1
        if self._chunks > MAX_SMALL_CHUNKS + self._size // SMALL_CHUNK_BYTES:
            raise RequestRejected(400, "the chunks are too small")
        size = int(match[1], 16)
        self._in_trailers = size == 0
        self._remaining = size + 2 if size else 0

    def _read_trailer(self, line: bytes) -> None:
        if not line:
            self.done = True
            return
        self._trailer_bytes += len(line) + TRAILER_OVERHEAD_BYTES
        if self._trailer_bytes > self._limits.max_trailer_bytes:
            raise RequestRejected(431, "the trailers are too long")
        if not _TRAILER.fullmatch(line):
            raise RequestRejected(400, "a trailer is malformed")


def request_body(length: int, limits: ServerLimits) -> RequestBody | None:
    """Returns the decoder for a body of this length (or CHUNKED), or None if the request has no body."""
    if length == CHUNKED:
        return ChunkedBody(limits)
    return FixedLengthBody(limits, length) if length else None
