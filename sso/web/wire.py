"""What a handler that waits must know of its client's connection. Whatever serves puts one of these into the scope."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from quart import request

# Among the extensions of the ASGI scope.
KEY = "sso.wire"
LEAN = "sso.lean"  # the head is within its limits; a body is read when asked for, and a client that leaves cancels


class Wire(Protocol):
    undo: Callable[[], Awaitable[None]] | None
    """Run, shielded, if the answer to this request could not be written."""

    def watched(self) -> AbstractContextManager[None]:
        """Inside, a client that leaves ends the request: it is cancelled. Elsewhere its leaving need not be noticed."""


class NoWire:
    """Where nobody can tell, as in tests without a server."""

    undo: Callable[[], Awaitable[None]] | None = None

    def watched(self) -> AbstractContextManager[None]:
        return nullcontext()


def wire() -> Wire:
    """Of this request."""
    extensions: dict[str, Any] = request.scope.get("extensions") or {}
    return extensions.get(KEY) or NoWire()
