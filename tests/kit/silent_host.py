"""A host that never answers: the kernel accepts connections to a listening socket that no program reads."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


class SilentHost:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.port: int = listener.getsockname()[1]

    def connections(self) -> int:
        """Returns the number of connections since the last call."""
        count = 0
        while True:
            try:
                self._listener.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1


@contextmanager
def silent_host() -> Iterator[SilentHost]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        listener.setblocking(False)
        yield SilentHost(listener)
