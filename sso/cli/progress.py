"""Progress of a long command: one line that changes on a terminal, a line every few seconds elsewhere."""

import sys
import time

EVERY_S = 0.2
EVERY_S_WITHOUT_TERMINAL = 10.0


class Progress:
    def __init__(self, title: str) -> None:
        self._title = title
        self._terminal = sys.stderr.isatty()
        self._every = EVERY_S if self._terminal else EVERY_S_WITHOUT_TERMINAL
        self._shown = time.monotonic() if not self._terminal else 0.0

    def bytes(self, done: int, total: int | None = None) -> None:
        size = f"{done / 1e6:.1f} MB" if total is None else f"{done / 1e6:.1f} of {total / 1e6:.1f} MB"
        self.show(size)

    def show(self, text: str) -> None:
        now = time.monotonic()
        if now - self._shown >= self._every:
            self._shown = now
            self._write(f"{self._title}: {text}")

    def done(self) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()
