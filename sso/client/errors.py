"""Errors of the client. Each has a text for people; a refused request also has the status and the response."""

from typing import Any


class ClientError(Exception):
    """A request failed."""


class ConnectionFailed(ClientError):
    """The server could not be reached, or its response could not be read."""


class RequestRefused(ClientError):
    """The server refused the request. ``text`` names the field and what was expected.

    ``field`` is the path of that field in the request, such as ("redirect_uris", 0); () if it is about no field.
    """

    def __init__(self, status: int, text: str, body: dict[str, Any], retry_after: int | None = None) -> None:
        super().__init__(f"{text} (status {status})")
        self.status = status
        self.text = text
        self.body = body
        self.field: tuple[str | int, ...] = tuple(body.get("field", ()))
        self.expected: str = body.get("expected", "")  # what the field must be
        self.retry_after = retry_after  # seconds


class SignInRequired(RequestRefused):
    """401: the credentials are missing, wrong or no longer valid."""


class OtpMissing(SignInRequired):
    """401 of a login: the password is right, and a code of the second factor is needed."""

    @property
    def second_factors(self) -> list[str]:
        return list(self.body.get("otp", ()))


class MissingRight(RequestRefused):
    """403: the caller lacks a right, which the text names."""


class RecordNotFound(RequestRefused):
    """404."""


class RecordChanged(RequestRefused):
    """412: the record was changed since it was read."""


class TooManyRequests(RequestRefused):
    """429, after the retries: ``retry_after`` says when to try again."""


_BY_STATUS: dict[int, type[RequestRefused]] = {
    401: SignInRequired,
    403: MissingRight,
    404: RecordNotFound,
    412: RecordChanged,
    429: TooManyRequests,
}


def refusal(status: int, body: dict[str, Any], retry_after: int | None) -> RequestRefused:
    """Returns the error for a response. OAuth endpoints have another format than the others."""
    if "error_description" in body:
        text = f"{body.get('error')}: {body['error_description']}"
    else:
        text = str(body.get("error") or "the server refused the request")
    kind = OtpMissing if status == 401 and "otp" in body else _BY_STATUS.get(status, RequestRefused)
    return kind(status, text, body, retry_after)
