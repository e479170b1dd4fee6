"""An answer that has to be waited for, when Quart is done with the request.

What waits keeps only what it needs itself: of held polls there are thousands, and a request of Quart's, with its
contexts and frames, is half of what each would cost.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from quart import Response

Wait = Callable[..., Awaitable[Response]]
Finish = Callable[[Response | Exception], Response]


class DeferredResponse(Response):
    """What a handler returns instead; the edge says how the answer, or the error, is to be finished.

    By its type it is a response, which is what handlers return; there is nothing else of one in it.
    """

    timeout = None  # the handler has a limit of its own

    def __init__(self, wait: Wait, *arguments: Any) -> None:
        self._wait = wait
        self._arguments = arguments
        self.finish: Finish = _as_it_is

    def begin(self) -> tuple[Awaitable[Response], Finish]:
        """What to wait for, and what is to be done with how it ends. The answer itself is then no longer needed."""
        return self._wait(*self._arguments), self.finish

    async def answered(self) -> Response:
        waiting, finish = self.begin()
        try:
            return finish(await waiting)
        except Exception as error:
            return finish(error)


def _as_it_is(outcome: Response | Exception) -> Response:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
