"""What a limit on the database does not count: the time in which this process itself was busy.

A statement goes through several rounds of the event loop on its way to the database and back. In a rush of requests the
rounds are long, and the database would seem to be away when it only was not listened to.
"""

import trio

ROUND_S = 0.02  # an ordinary round is shorter, and counts


class LoopLag(trio.abc.Instrument):
    def __init__(self) -> None:
        self._began = 0.0
        self.limits: set[trio.CancelScope] = set()

    def after_io_wait(self, timeout: float) -> None:
        self._began = trio.current_time()

    def before_io_wait(self, timeout: float) -> None:
        if self.limits:
            took = trio.current_time() - self._began
            if took > ROUND_S:
                for limit in self.limits:
                    limit.deadline += took
