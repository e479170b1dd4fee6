"""What the handler of a request tells the recorder: whose request it is, and how an authorization was answered."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from msgspec import Struct

# How it is known that a request is one of the client: the client authenticated, or a code or token of the client was
# accepted. "none": the request names the client, which everybody can do.
Proof = Literal["client", "token", "none"]


class Observation(Struct):
    client_id: str = ""  # of the client that is proven, "" without one
    proof: Proof = "none"
    answer: Mapping[str, Any] | None = None  # what is kept of the answer to the authorization request


_current: ContextVar[Observation | None] = ContextVar("observation", default=None)


def current_observation() -> Observation | None:
    """Returns None if the current request is not observed."""
    return _current.get()


@contextmanager
def observing(observation: Observation) -> Iterator[None]:
    """The requests of a connection share their context, so the observation ends with the handler."""
    token = _current.set(observation)
    try:
        yield
    finally:
        _current.reset(token)


def note_client(client_id: str, proof: Proof) -> None:
    """Says which client the current request has proved to be of; "" if it has failed to."""
    if (observation := _current.get()) is not None:
        observation.client_id, observation.proof = client_id, proof
