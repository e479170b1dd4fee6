"""Sends a request with its credentials, and again after errors that pass: without input or output of its own.

``exchange`` is a generator. It yields what its caller must do, such as to send a request, and gets the result, so that
the two kinds of clients share it.
"""

import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from sso.client.call import ApiCall, ServerAnswer
from sso.client.credentials import Calls, Credentials
from sso.client.errors import ClientError, ConnectionFailed, RequestRefused, UnexpectedResponse, refusal
from sso.client.shared_credentials import SharedCredentials, TaskCredentials, TaskLock, ThreadCredentials

T = TypeVar("T")

# What reading a response raises that has other members, or values of other types, than those of this version.
UNEXPECTED = (LookupError, TypeError, ValueError, AttributeError)
FIRST_PAUSE_S, MAX_PAUSE_S = 0.2, 30.0
PASSING = (429, 502, 503, 504)


@dataclass(frozen=True)
class Send:
    request: ApiCall[Any]
    headers: dict[str, str]


@dataclass(frozen=True)
class Wait:
    seconds: float


@dataclass(frozen=True)
class Acquire:
    """Asks for the lock, which the generator releases. Only clients with TaskCredentials get this step."""

    lock: TaskLock


Step = Send | Wait | Acquire
Steps = Generator[Step, httpx.Response | httpx.TransportError | None, T]


def exchange(call: ApiCall[T], credentials: Credentials | None, retries: int) -> Steps[T]:
    """Returns the result of the request. Raises ClientError."""
    for is_last in (False, True):
        headers = dict(call.headers)
        if call.authenticated and credentials is not None:
            headers |= yield from get_headers(credentials, retries)
        try:
            return _result(call, (yield from _send(call, headers, retries)))
        except RequestRefused as error:
            is_expired = error.status == 401 and call.authenticated
            if is_last or not (is_expired and credentials is not None and credentials.forget(headers)):
                raise
    raise AssertionError  # the last attempt returns or raises


def get_headers(credentials: Credentials, retries: int) -> Steps[dict[str, str]]:
    """Returns the headers of the credentials, and signs in if it must."""
    if isinstance(credentials, ThreadCredentials):
        failures = credentials.shared.failures
        with credentials.shared.lock:
            return (yield from _sign_in(credentials, failures, retries))
    if isinstance(credentials, TaskCredentials):
        failures = credentials.shared.failures
        yield Acquire(credentials.shared.lock)
        try:
            return (yield from _sign_in(credentials, failures, retries))
        finally:
            credentials.shared.lock.release()
    return (yield from run_calls(credentials.headers(), retries))


def _sign_in(credentials: SharedCredentials[Any], failures: int, retries: int) -> Steps[dict[str, str]]:
    """Needs the lock. ``failures`` are those at the time when the caller began to wait for it."""
    shared = credentials.shared
    if shared.error is not None and shared.failures > failures:
        raise shared.error.with_traceback(None)  # otherwise each caller would add its own to it
    try:
        headers = yield from run_calls(credentials.headers(), retries)
    except ClientError as error:
        shared.failures, shared.error = shared.failures + 1, error
        raise
    shared.error = None
    return headers


def run_calls(calls: Calls[T], retries: int) -> Steps[T]:
    """Sends the requests that a generator yields, without credentials, and returns its result."""
    try:
        call = next(calls)
        while True:
            try:
                result = _result(call, (yield from _send(call, dict(call.headers), retries)))
            except ClientError as error:
                call = calls.throw(error)
            else:
                try:
                    call = calls.send(result)
                except UNEXPECTED as error:
                    raise _not_as_expected(call, error) from error
    except StopIteration as done:
        returned: T = done.value
        return returned


def _result(call: ApiCall[T], answer: ServerAnswer) -> T:
    try:
        return call.read(answer)
    except UNEXPECTED as error:
        raise _not_as_expected(call, error) from error


def _not_as_expected(call: ApiCall[Any], error: Exception) -> UnexpectedResponse:
    return UnexpectedResponse(f"{call.method} {call.path}: the response is not as expected: {error!r}")


def _send(call: ApiCall[Any], headers: dict[str, str], retries: int) -> Steps[ServerAnswer]:
    pause = FIRST_PAUSE_S
    for attempts_left in range(retries, -1, -1):
        outcome = yield Send(call, headers)
        if isinstance(outcome, httpx.Response):
            answer = read_answer(outcome)
            if isinstance(answer, ServerAnswer):
                return answer
            wait_s = float(answer.retry_after or pause)
            # A request that was refused with 429 has had no effect. After the others, that is not certain.
            may_repeat = answer.status == 429 or (answer.status in PASSING and call.may_repeat)
            if not may_repeat or not attempts_left or wait_s > MAX_PAUSE_S:
                raise answer
        else:
            was_sent = not isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout)
            if not attempts_left or (was_sent and not call.may_repeat):
                raise ConnectionFailed(f"{call.method} {call.path}: {outcome or type(outcome).__name__}")
            wait_s = pause * random.uniform(0.5, 1)  # noqa: S311 - so that clients do not come back together
        yield Wait(wait_s)
        pause = min(2 * pause, MAX_PAUSE_S)
    raise AssertionError  # the last attempt returns or raises


def read_answer(response: httpx.Response) -> ServerAnswer | RequestRefused:
    try:
        body = response.json() if response.content else {}
    except ValueError:
        body = {"error": f"the server answered with {response.headers.get('Content-Type', 'something')}, not with JSON"}
        return refusal(response.status_code, body, _retry_after(response), is_json=False)
    if not isinstance(body, dict):
        body = {"data": body}
    if response.is_success and body.get("status") != "ERROR":
        return ServerAnswer(response.status_code, body, response.headers.get("ETag"))
    return refusal(response.status_code, body, _retry_after(response))


def _retry_after(response: httpx.Response) -> int | None:
    value = response.headers.get("Retry-After", "")
    return int(value) if value.isdecimal() and len(value) < 9 else None
