"""Pages that show how far a long operation is, while it runs: the page arrives in parts.

The state of the operation is not kept anywhere, so that it does not matter which worker answers. The page needs no
script: each part replaces the one before it by a rule of the style sheet. If the browser closes the page, the operation
is cancelled when the next part cannot be sent, or ends before that.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable

import trio
from msgspec import Struct
from quart import Response, current_app

MARKER = "<!-- steps -->"  # where the parts of the page come
STEP_S = 0.5  # between two parts


class OperationProgress(Struct):
    what: str = ""
    done: int = 0
    total: int = 0

    def show(self, what: str, done: int, total: int) -> None:
        self.what, self.done, self.total = what, done, total


Operation = Callable[[OperationProgress], Awaitable[str]]  # returns the end of the page, also after an error


def stream_page(page: str, headers: dict[str, str], operation: Operation) -> Response:
    """Returns a page in parts: up to the marker, then the steps and the end of the operation, then the rest."""
    above, _, below = page.partition(MARKER)
    step = current_app.jinja_env.get_template("console/_step.html")

    async def parts() -> AsyncGenerator[bytes]:
        yield above.encode()
        progress, ended, is_closed, result = OperationProgress(), trio.Event(), False, ""

        async def run() -> None:
            nonlocal result
            result = await operation(progress)
            ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            while not ended.is_set() and not is_closed:
                try:
                    yield step.render(progress=progress).encode()
                except GeneratorExit:  # the browser has closed the page
                    is_closed = True
                    nursery.cancel_scope.cancel()
                else:
                    with trio.move_on_after(STEP_S):
                        await ended.wait()
        if not is_closed:
            yield f"{result}{below}".encode()

    response = Response(parts(), 200, headers, content_type="text/html; charset=utf-8")
    response.timeout = None  # the operation has a time limit of its own
    return response
