"""The WebSockets of games while ``scripts/bench latency`` measures: how late their heartbeats are."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from scripts.benchmarks.game_sessions import EMPTY_PONG, HEARTBEAT, PING, handshake
from scripts.benchmarks.http_clients import BenchmarkError
from scripts.benchmarks.latency_kinds import HEARTBEAT as KIND
from scripts.benchmarks.open_loop.connection import Connection, ConnectionLost
from scripts.benchmarks.open_loop.generator import Generator

OPEN_S = 60.0


def lateness(gap_s: float, interval_s: float) -> list[float]:
    """Returns how late the heartbeats were that were due since the last one. The last of them has arrived.

    After a gap of 3.5 intervals, three were due: one was late by 2.5 intervals, one by 1.5, and one by 0.5.
    """
    due = max(1, int(gap_s / interval_s))
    return [max(0.0, gap_s - number * interval_s) for number in range(1, due + 1)]


class HeartbeatSocket:
    def __init__(self, generator: Generator, address: tuple[str, int], gsid: str, interval_s: float) -> None:
        self._generator = generator
        self._interval_s = interval_s
        self._last = 0.0
        self._connection = Connection(address, generator.epoll)
        generator.add_handler(self._connection.number, self._handle)
        self._connection.send(handshake(gsid))
        self.is_open = False  # the first event has arrived

    def forget(self) -> None:
        """Counts from the next heartbeat on."""
        self._last = 0.0

    def close(self) -> None:
        if self._connection.number >= 0:
            self._generator.remove_handler(self._connection.number)
            self._connection.close()
            self._connection.number = -1

    def _handle(self, events: int) -> None:
        try:
            data = self._connection.handle(events)
        except ConnectionLost:
            self._generator.figures.kinds[KIND].failures["connection closed"] += 1
            self.close()
            return
        if PING in data:
            self._connection.send(EMPTY_PONG)
        if HEARTBEAT in data:
            self.is_open = True
            now = time.perf_counter()
            if self._last:
                self._generator.figures.kinds[KIND].latencies += lateness(now - self._last, self._interval_s)
            self._last = now


@contextmanager
def open_sockets(
    generator: Generator, address: tuple[str, int], gsids: Sequence[str], interval_s: float
) -> Iterator[None]:
    """Opens a socket for each session. Heartbeats count from the next one on."""
    sockets = [HeartbeatSocket(generator, address, gsid, interval_s) for gsid in gsids]
    try:
        end = time.perf_counter() + OPEN_S
        while not all(socket.is_open for socket in sockets):
            generator.turn_for(0.02)
            if time.perf_counter() > end:
                raise BenchmarkError(f"not all of {len(sockets)} sockets were opened in {OPEN_S:.0f} s")
        for socket in sockets:
            socket.forget()
        yield
    finally:
        for socket in sockets:
            socket.close()
