"""Limits for what the client of a WebSocket may send."""

import trio

MAX_FRAMES, FRAMES_S = 100, 5.0  # frames of any kind, including empty ones, within FRAMES_S seconds
MAX_BYTES_PER_SECOND = 16 * 1024


class ReadRateLimit:
    """Slows down reading from a client that sends more than MAX_BYTES_PER_SECOND."""

    __slots__ = ("_bytes", "_since")

    def __init__(self) -> None:
        self._since = trio.current_time()
        self._bytes = 0

    async def wait_after(self, count: int) -> None:
        now = trio.current_time()
        if now - self._since > 1:
            self._since, self._bytes = now, 0
        self._bytes += count
        if self._bytes > MAX_BYTES_PER_SECOND:
            await trio.sleep_until(self._since + self._bytes / MAX_BYTES_PER_SECOND)
