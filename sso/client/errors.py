"""Errors of the client. Each has a text for people; a refused request also has the status and the response."""

from typing import Any


class ClientError(Exception):
    """A request failed. ``reason`` is refused, invalid, unavailable or not_a_service, as in the packages of ``sdk``."""

    reason = "unavailable"


class ConnectionFailed(ClientError):
    """The server could not be reached, or its response could not be read."""


class UnexpectedResponse(ConnectionFailed):
    """The response is none of the service: it has other members or types than expected."""

    reason = "not_a_service"


class RequestRefused(ClientError):
    """The server refused the request. ``text`` names the field and what was expected.

    ``field`` is the path of that field in the request, such as ("redirect_uris", 0); () if it is about no field.
    """

    def __init__(
        self, status: int, text: str, body: dict[str, Any], retry_after: int | None = None, *, is_json: bool = True
    ) -> None:
        super().__init__(f"{text} (status {status})")
        self.status = status
        self.text = text
        self.body = body
        self.field: tuple[str | int, ...] = tuple(body.get("field", ()))
        self.expected: str = body.get("expected", "")  # what the field must be
        self.retry_after = retry_after  # seconds
        if status in (401, 403):
            self.reason = "refused"
        elif status != 429 and status < 500:
            self.reason = "invalid" if is_json and status >= 400 else "not_a_service"


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


class PlayerRefused(Exception):
    """A user JWT is not accepted.

    ``reason`` is malformed, signature, unknown_key, issuer, expired, factor or unavailable.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class WebhookRefused(Exception):
    """The request of a webhook is not accepted. ``reason`` is malformed, signature or old."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def refusal(status: int, body: dict[str, Any], retry_after: int | None, *, is_json: bool = True) -> RequestRefused:
    """Returns the error for a response. OAuth endpoints have another format than the others."""
    if "error_description" in body:
        text = f"{body.get('error')}: {body['error_description']}"
    else:
        text = str(body.get("error") or "the server refused the request")
    kind = OtpMissing if status == 401 and "otp" in body else _BY_STATUS.get(status, RequestRefused)
    return kind(status, text, body, retry_after, is_json=is_json)
