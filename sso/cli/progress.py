"""Progress of a long command: one line on a terminal, which changes and disappears at the end. Elsewhere nothing is
written: a file or a service manager gets log lines only."""

import os
import sys
import time
from typing import TYPE_CHECKING, Self, TypeVar

from sso.core.printable import printable

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

EVERY_S = 0.2
QUICK_S = 0.5  # a wait that ends sooner is not shown


class Progress:
    """Use it in a ``with`` block, so that the line disappears before an error is printed."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._terminal = _is_terminal()
        self._began = time.monotonic()
        self._next = 0.0
        self._visible = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.done()

    def bytes(self, done: int, total: int | None = None) -> None:
        self.show(f"{done / 1e6:.1f} MB" if total is None else f"{done / 1e6:.1f} of {total / 1e6:.1f} MB")

    def count(self, done: int, total: int) -> None:
        self.show(f"{done:,} of {total:,}")

    def show(self, text: str) -> None:
        now = time.monotonic()
        if self._terminal and now >= self._next:
            self._next = now + EVERY_S
            self._visible = True
            self._write(f"{self._title}: {text}")

    def wait(self, work: "Future[T]") -> T:
        """Returns the result of work that another thread does. Meanwhile, shows the seconds that it has taken."""
        while not work.done():
            try:
                return work.result(EVERY_S)
            except TimeoutError:
                if (seconds := time.monotonic() - self._began) > QUICK_S:
                    self.show(f"{seconds:.0f} s")
        return work.result()

    def done(self) -> None:
        if self._visible:
            self._visible = False
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{printable(text)[: _columns() - 1]}")
        sys.stderr.flush()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80
