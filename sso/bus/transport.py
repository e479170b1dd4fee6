"""The interface of what carries messages between workers: PostgreSQL or NATS."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn, Protocol

EVERYONE = ""  # in place of the name of a worker
MAX_PAYLOAD = 7_900  # bytes of a message; a notification of PostgreSQL may have 7,999


class BusUnavailable(Exception):
    """The connection is lost; the text says why."""


class Message(NamedTuple):
    worker: str  # the worker that it is for, or EVERYONE
    payload: str  # labels of topics, one per line


class Transport(Protocol):
    """Carries messages to other workers. A message may be lost, but only if a connection is lost or a worker dies."""

    def label(self, topic: str) -> str:
        """Returns what messages contain in place of the topic."""
        ...

    async def run(self, receive: Callable[[str], None], connected: Callable[[], None]) -> NoReturn:
        """Calls ``connected`` once it is connected, and then ``receive`` for each payload from another worker.

        Raises BusUnavailable when the connection cannot be opened or is lost.
        """
        ...

    async def send(self, messages: Sequence[Message]) -> None:
        """Returns when the messages have arrived at the server. Raises BusUnavailable if they may not have."""
        ...
