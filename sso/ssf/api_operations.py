"""Describes the endpoints of the Shared Signals Framework."""

from collections.abc import Sequence
from typing import Any

from sso.signals.event_types import REQUESTABLE
from sso.ssf.model import METHODS, POLL, POLL_PATH
from sso.ssf.requests import (
    MAX_NAMED,
    MAX_POLLED,
    PollRequest,
    StatusRequest,
    StreamRequest,
    SubjectRequest,
    VerificationRequest,
)
from sso.ssf.routes import ADD_SUBJECT, METADATA, REMOVE_SUBJECT, STATUS, STREAM, VERIFY
from sso.web.api_description import (
    JSON_BODY,
    OBJECT,
    STRING,
    ApiBody,
    ApiOperation,
    ApiParameter,
    ApiResponse,
    JsonSchema,
    ok,
    properties,
)

TAG = "Shared Signals"
_SECURITY = (("ssfToken",),)
_ERRORS = (401, 403)
_ID = "c1Gd3mYw"
_NO_STORE = {"Cache_Control": "no-store"}
_STREAM_ID = ApiParameter("stream_id", "The stream.", required=True)
_STRINGS: JsonSchema = {"type": "array", "items": STRING}
_STREAM = properties(
    ("stream_id", "iss", "aud", "events_supported", "events_requested", "events_delivered", "delivery"),
    stream_id=STRING,
    iss=STRING,
    aud=STRING,
    events_supported=_STRINGS,
    events_requested=_STRINGS,
    events_delivered=_STRINGS,
    delivery=properties(("method", "endpoint_url"), method={"enum": list(METHODS.values())}, endpoint_url=STRING),
    min_verification_interval={"type": "integer"},
    description=STRING,
)
_EXAMPLE = {
    "stream_id": _ID,
    "iss": "https://login.example.com",
    "aud": "shop",
    "events_supported": list(REQUESTABLE),
    "events_requested": list(REQUESTABLE)[:1],
    "events_delivered": list(REQUESTABLE)[:1],
    "delivery": {"method": POLL, "endpoint_url": f"https://login.example.com{POLL_PATH}?stream_id={_ID}"},
    "min_verification_interval": 10,
}
_STATUS = properties(
    ("stream_id", "status"), stream_id=STRING, status={"enum": ["enabled", "paused", "disabled"]}, reason=STRING
)
_STATUS_EXAMPLE = {"stream_id": _ID, "status": "paused", "reason": "maintenance"}
_SUBJECT = {"stream_id": _ID, "subject": {"format": "iss_sub", "iss": "https://login.example.com", "sub": "1001"}}
_WANTED = {"events_requested": list(REQUESTABLE)[:1], "delivery": {"method": POLL}}


def _body(model: Any, example: Any) -> ApiBody:
    return ApiBody(model, (JSON_BODY,), {"request": example})


def _operation(
    method: str,
    path: str,
    summary: str,
    responses: dict[int, ApiResponse],
    description: str = "",
    parameters: Sequence[ApiParameter] = (),
    body: ApiBody | None = None,
    errors: Sequence[int] = (404,),
) -> ApiOperation:
    body_errors = (413, 415) if body else ()
    return ApiOperation(
        method, path, TAG, summary, responses, description, parameters, body, (*_ERRORS, *errors, *body_errors),
        _SECURITY,
    )  # fmt: skip


OPERATIONS = (
    ApiOperation(
        "GET", METADATA, TAG, "Read the configuration of the transmitter", {200: ok("The endpoints.", OBJECT)}
    ),
    _operation(
        "GET",
        STREAM,
        "Read streams",
        {200: ok("The stream, or a list of all streams of the client.", None, _EXAMPLE, **_NO_STORE)},
        parameters=(ApiParameter("stream_id", "One stream. Without it: all."),),
    ),
    _operation(
        "POST",
        STREAM,
        "Create a stream",
        {201: ok("The stream.", _STREAM, _EXAMPLE, **_NO_STORE)},
        "Without `events_requested`, it gets all types; without `delivery`, it is polled.",
        body=_body(StreamRequest, _WANTED),
        errors=(409,),
    ),
    _operation(
        "PATCH",
        STREAM,
        "Change a stream",
        {200: ok("The stream.", _STREAM, _EXAMPLE, **_NO_STORE)},
        "What is missing stays.",
        body=_body(StreamRequest, {"stream_id": _ID, **_WANTED}),
    ),
    _operation(
        "PUT",
        STREAM,
        "Replace the settings of a stream",
        {200: ok("The stream.", _STREAM, _EXAMPLE, **_NO_STORE)},
        "What is missing gets its default.",
        body=_body(StreamRequest, {"stream_id": _ID, **_WANTED}),
    ),
    _operation(
        "DELETE",
        STREAM,
        "Delete a stream",
        {204: ApiResponse("The stream is deleted, with the events that wait.")},
        parameters=(_STREAM_ID,),
    ),
    _operation(
        "GET",
        STATUS,
        "Read the status of a stream",
        {200: ok("The status.", _STATUS, _STATUS_EXAMPLE, **_NO_STORE)},
        parameters=(_STREAM_ID,),
    ),
    _operation(
        "POST",
        STATUS,
        "Set the status of a stream",
        {200: ok("The status.", _STATUS, _STATUS_EXAMPLE, **_NO_STORE)},
        "A paused stream keeps its events, a disabled one does not.",
        body=_body(StatusRequest, _STATUS_EXAMPLE),
    ),
    _operation(
        "POST",
        ADD_SUBJECT,
        "Include a user again",
        {200: ok("The user is included, if the client knows the user.", OBJECT, {}, **_NO_STORE)},
        body=_body(SubjectRequest, _SUBJECT),
    ),
    _operation(
        "POST",
        REMOVE_SUBJECT,
        "Exclude a user",
        {204: ApiResponse("The stream gets no events about the user.")},
        body=_body(SubjectRequest, _SUBJECT),
    ),
    _operation(
        "POST",
        VERIFY,
        "Request a verification event",
        {204: ApiResponse("The event follows those that wait.")},
        body=_body(VerificationRequest, {"stream_id": _ID, "state": "VGhpcyBpcyBhbiBleGFtcGxl"}),
        errors=(404, 429),
    ),
    _operation(
        "POST",
        POLL_PATH,
        "Poll events",
        {
            200: ok(
                "The next events, signed, by their jti.",
                properties(("sets",), sets={"type": "object"}, moreAvailable={"type": "boolean"}),
                {"sets": {"f1d3a2c0-6f0e-4c7e-9d3b-2f8f0d3c8a11": "eyJ0eXAiOiJzZWNldmVudCtqd3QiLCJhbGciOi…"}},
                **_NO_STORE,
            )
        },
        f"The poll is held until there is an event, unless `returnImmediately` is true. At most {MAX_POLLED} events in "
        f"an answer, and {MAX_NAMED} acknowledgements in a request.",
        (_STREAM_ID,),
        _body(PollRequest, {"maxEvents": 10, "ack": ["f1d3a2c0-6f0e-4c7e-9d3b-2f8f0d3c8a10"]}),
        (404, 429),
    ),
)
