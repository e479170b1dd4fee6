"""A response that is awaited after Quart has finished with the request.

Thousands of held polls wait at a time; Quart's request with its contexts and frames would double the memory of each.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from quart import Response

Wait = Callable[..., Awaitable[Response]]
Finish = Callable[[Response | Exception], Response]


class DeferredResponse(Response):
    """Returned by a handler in place of a response; the middleware sets ``finish``, which completes the real one.

    It is a Response in type only, because handlers must return one. It has none of the attributes of a Response.
    """

    timeout = None  # the handler limits its own waiting

    def __init__(self, wait: Wait, *arguments: Any) -> None:
        self._wait = wait
        self._arguments = arguments
        self.finish: Finish = _return_or_raise

    def start(self) -> tuple[Awaitable[Response], Finish]:
        """Returns the awaitable response, and the function to call with its result or its exception.

        The caller can then drop this object, to save memory while it waits.
        """
        return self._wait(*self._arguments), self.finish

    async def wait(self) -> Response:
        waiting, finish = self.start()
        try:
            return finish(await waiting)
        except Exception as error:
            return finish(error)


def _return_or_raise(outcome: Response | Exception) -> Response:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
