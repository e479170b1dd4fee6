"""The body of a request as it is framed on the wire: so many bytes, or chunks."""

import re

from sso.serve.http1.head import CHUNKED
from sso.serve.http1.rejections import RequestRejected
from sso.serve.server_limits import ServerLimits

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(;[\t -~\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*")

CHUNKS_AT_ONCE = 128  # read in one call: the event loop must not wait for more
MAX_SMALL_CHUNKS, SMALL_CHUNK_BYTES = 4096, 64  # a chunk costs time, however small it is
TRAILER_COST = 32  # bytes that a trailer counts for, besides its own


class RequestBody:
    """Takes what belongs to one body from the bytes of a connection."""

    __slots__ = ("_limits", "_taken", "done")

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._taken = 0
        self.done = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """What of these bytes is body, and what is left. Left may be the beginning of something to come."""
        raise NotImplementedError

    def _count(self, size: int) -> None:
        self._taken += size
        if self._taken > self._limits.max_body_bytes:
            raise RequestRejected(413, "the body is too long")


class FixedLengthBody(RequestBody):
    __slots__ = ("_left",)

    def __init__(self, limits: ServerLimits, length: int) -> None:
        super().__init__(limits)
        self._left = length

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        body, rest = data[: self._left], data[self._left :]
        self._left -= len(body)
        self._count(len(body))
        self.done = self._left == 0
        return body, rest


class ChunkedBody(RequestBody):
    """Extensions and trailers are checked, bounded, and of no interest."""

    __slots__ = ("_chunks", "_extensions", "_in_trailers", "_left", "_trailers")

    def __init__(self, limits: ServerLimits) -> None:
        super().__init__(limits)
        self._left = 0  # of the present chunk, with the line end after it
        self._chunks = 0
        self._extensions = 0
        self._trailers = 0
        self._in_trailers = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Reads at most CHUNKS_AT_ONCE chunks; what is left may then hold more of them."""
        found: list[bytes] = []
        at = 0
        last = self._chunks + CHUNKS_AT_ONCE
        while not self.done and (self._chunks < last or self._left):
            if self._left:
                at, more = self._data(data, at, found)
            else:
                at, more = self._line(data, at)
            if not more:
                break
        return b"".join(found), data[at:]

    def _data(self, data: bytes, at: int, found: list[bytes]) -> tuple[int, bool]:
        if self._left > 2:
            piece = data[at : at + self._left - 2]
            found.append(piece)
            self._count(len(piece))
            self._left -= len(piece)
            return at + len(piece), bool(piece)
        if len(data) - at < 2:
            return at, False
        if data[at : at + 2] != b"\r\n":
            raise RequestRejected(400, "a chunk is longer than it says")
        self._left = 0
        return at + 2, True

    def _line(self, data: bytes, at: int) -> tuple[int, bool]:
        most = self._limits.max_trailer_bytes if self._in_trailers else self._limits.max_chunk_line_bytes
        end = data.find(b"\n", at, at + most + 2)
        if end < 0:
            if len(data) - at > most:
                raise RequestRejected(400, "a line between chunks is too long")
            return at, False
        if end == at or data[end - 1] != 0x0D:
            raise RequestRejected(400, "a line does not end with CR LF")
        line = data[at : end - 1]
        if self._in_trailers:
            self._trailer(line)
        else:
            self._size(line)
        return end + 1, True

    def _size(self, line: bytes) -> None:
        match = _SIZE.fullmatch(line)
        if match is None:
            raise RequestRejected(400, "the size of a chunk is malformed")
        self._extensions += len(line) - len(match[1])
        if self._extensions > self._limits.max_extension_bytes:
            raise RequestRejected(400, "the chunks have too many extensions")
        self._chunks += 1
        if self._chunks > MAX_SMALL_CHUNKS + self._taken // SMALL_CHUNK_BYTES:
            raise RequestRejected(400, "the chunks are too small")
        size = int(match[1], 16)
        self._in_trailers = size == 0
        self._left = size + 2 if size else 0

    def _trailer(self, line: bytes) -> None:
        if not line:
            self.done = True
            return
        self._trailers += len(line) + TRAILER_COST
        if self._trailers > self._limits.max_trailer_bytes:
            raise RequestRejected(431, "the trailers are too long")
        if not _TRAILER.fullmatch(line):
            raise RequestRejected(400, "a trailer is malformed")


def request_body(length: int, limits: ServerLimits) -> RequestBody | None:
    if length == CHUNKED:
        return ChunkedBody(limits)
    return FixedLengthBody(limits, length) if length else None
