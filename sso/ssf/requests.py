"""The bodies of requests to the endpoints of streams, and their errors."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from sso.core.errors import ApiError, RetryLater
from sso.core.field_errors import FieldError
from sso.core.outgoing_url import MAX_URL
from sso.signals.event_types import REQUESTABLE
from sso.ssf.model import METHODS, MIN_VERIFICATION_S, NewSettings, SignalStream
from sso.web.request_model import JsonObject, RequestModel, WholeNumber, at_most

MAX_POLLED = 100  # events in one answer
MAX_NAMED = 1000  # events that one request acknowledges
MAX_BODY_BYTES = 64 * 1024
_METHOD_NAMES = {urn: name for name, urn in METHODS.items()}
_HEADER = re.compile(r"[!-~](?:[ -~]{0,4094}[!-~])?", re.ASCII)  # one line, so that no other header can follow
StreamId = Annotated[str, at_most(64, at_least=1)]


class InsufficientScope(ApiError):
    status = 403
    code = "insufficient_scope"

    def __init__(self, scope: str) -> None:
        super().__init__(f"the access token needs the scope {scope}")
        self.headers = {"WWW-Authenticate": f'Bearer realm="sso", error="{self.code}", scope="{scope}"'}


class InvalidServiceToken(ApiError):
    status = 401
    code = "invalid_token"
    message = "expected a valid access token of client_credentials with the scope ssf.read or ssf.manage"

    def __init__(self) -> None:
        super().__init__()
        self.headers = {"WWW-Authenticate": f'Bearer realm="sso", error="{self.code}"'}


class TooManyVerifications(RetryLater):
    status = 429
    code = "slow_down"
    message = f"the stream was verified less than {MIN_VERIFICATION_S} seconds ago"


class TooManySignalPolls(RetryLater):
    status = 429
    code = "slow_down"
    message = "too many polls of this client are held or wait for their answers"


class DeliveryRequest(RequestModel):
    method: str
    endpoint_url: Annotated[str, at_most(MAX_URL)] | None = None
    authorization_header: str | None = None


class StreamRequest(RequestModel):
    """What a receiver sets. Other members that it sends back must be those of the stream."""

    stream_id: StreamId | None = None
    delivery: DeliveryRequest | None = None
    events_requested: Annotated[list[Annotated[str, at_most(256)]], Field(max_length=100)] | None = None
    description: Annotated[str, at_most(256)] | None = None
    iss: str | None = None
    aud: str | list[str] | None = None


class StatusRequest(RequestModel):
    stream_id: StreamId
    status: Literal["enabled", "paused", "disabled"]
    reason: Annotated[str, at_most(256)] = ""


class SubjectRequest(RequestModel):
    stream_id: StreamId
    subject: JsonObject
    verified: bool = True  # of no consequence


class VerificationRequest(RequestModel):
    stream_id: StreamId
    state: Annotated[str, at_most(1024)] | None = None


class PollRequest(RequestModel):
    max_events: Annotated[WholeNumber, Field(ge=0, alias="maxEvents")] = MAX_POLLED
    return_immediately: bool = Field(default=False, alias="returnImmediately")
    ack: Annotated[list[Annotated[str, at_most(128)]], Field(max_length=MAX_NAMED)] = Field(default_factory=list)
    set_errs: Annotated[dict[str, Any], Field(max_length=MAX_NAMED, alias="setErrs")] = Field(default_factory=dict)


def new_settings(request: StreamRequest, issuer: str, client_id: str, old: SignalStream | None) -> NewSettings:
    """Returns the settings after the request. What is missing stays as in ``old``, or has its default.

    Raises FieldError.
    """
    _check_supplied(request, issuer, client_id)
    method, url, authorization = "poll", "", None if old else ""
    if request.delivery is not None:
        method, url, authorization = _delivery(request.delivery)
    elif old is not None:
        method, url = old.method, old.endpoint_url
    requested = request.events_requested
    if requested is None:
        requested = list(old.requested if old else REQUESTABLE)
    description = request.description if request.description is not None else (old.description if old else "")
    return NewSettings(method, url, authorization, tuple(requested), description)


def subject_user(subject: dict[str, Any], issuer: str) -> str:
    """Returns the ``sub`` of a subject. Raises FieldError."""
    if subject.get("format") != "iss_sub":
        raise FieldError(("subject", "format"), "expected iss_sub")
    if subject.get("iss") != issuer:
        raise FieldError(("subject", "iss"), f"expected {issuer}")
    sub = subject.get("sub")
    if not isinstance(sub, str) or not 0 < len(sub) <= 64:
        raise FieldError(("subject", "sub"), "expected the sub of a user")
    return sub


def reported_problem(set_errs: dict[str, Any]) -> str:
    """Returns what the receiver says about the last event that it has rejected."""
    for error in reversed(set_errs.values()):
        if isinstance(error, dict) and isinstance(error.get("err"), str):
            description = error.get("description")
            text = f"{error['err']}: {description}" if isinstance(description, str) else error["err"]
            return "rejected by the receiver: " + "".join(c if c.isprintable() else "?" for c in text)[:200]
    return "rejected by the receiver" if set_errs else ""


def _check_supplied(request: StreamRequest, issuer: str, client_id: str) -> None:
    if request.iss not in (None, issuer):
        raise FieldError(("iss",), f"expected {issuer}")
    if request.aud not in (None, client_id, [client_id]):
        raise FieldError(("aud",), f"expected {client_id}")


def _delivery(delivery: DeliveryRequest) -> tuple[str, str, str]:
    method = _METHOD_NAMES.get(delivery.method)
    if method is None:
        raise FieldError(("delivery", "method"), f"expected {' or '.join(_METHOD_NAMES)}")
    if method == "poll":
        return method, "", ""
    if not delivery.endpoint_url:
        raise FieldError(("delivery", "endpoint_url"), "is required")
    header = delivery.authorization_header or ""
    if header and not _HEADER.fullmatch(header):
        raise FieldError(("delivery", "authorization_header"), "expected one line of printable ASCII characters")
    return method, delivery.endpoint_url, header
