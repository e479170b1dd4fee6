"""Sends the requests of a command as the operator of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson

from sso.cli.context import CommandFailure, plain_failures
from sso.cli.records.api import CommandApi
from sso.client import ApiCall, RequestRefused
from sso.client.call import ServerAnswer
from sso.client.errors import refusal
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.core.operator_call import OperatorCall, Progress, Respond
from sso.core.printable import printable

T = TypeVar("T")


class OperatorClient(CommandApi):
    def __init__(self, respond: Respond, account: str) -> None:
        self._respond = respond
        self._account = account  # for the audit trail

    async def send(self, call: ApiCall[T]) -> T:
        return await self.send_with_progress(call, _ignore)

    async def send_with_progress(self, call: ApiCall[T], progress: Progress) -> T:
        answer = await self._respond(self._operator_call(call), progress)
        body: dict[str, Any] = orjson.loads(answer.body)
        if body.get("status") == "ERROR":
            raise refusal(answer.status, body, None)
        return call.read(ServerAnswer(answer.status, body, answer.etag))

    def _operator_call(self, call: ApiCall[Any]) -> OperatorCall:
        body = b"" if call.json is None else orjson.dumps(call.json)
        return OperatorCall(self._account, call.method, call.path, call.query, call.headers.get("If-Match"), body)


def _ignore(_what: str, _done: int, _total: int) -> None:
    pass


@contextmanager
def local_failures() -> Iterator[None]:
    """Turns refused requests into failures of the command."""
    try:
        with plain_failures(RequestRefused):
            yield
    except RequestRefused as error:
        raise command_error(error) or CommandFailure(printable(error.text)) from None


def command_error(error: RequestRefused) -> ApiError | None:
    """Returns the error if it is about the arguments of the command."""
    if error.field and error.expected:
        return FieldError(error.field, printable(error.expected))
    if error.status in (400, 409) or error.text == "removed":
        return ApiError(printable(error.text))
    return None
