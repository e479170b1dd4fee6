"""The error responses of all routes, in the format of the path (``sso/web/error_format.py``)."""

from typing import Any

from sso.openapi.plain_schema import REFERENCE
from sso.web.api_description import HTML, JSON_BODY, OBJECT, STRING, ApiOperation, JsonSchema, properties
from sso.web.error_format import ErrorFormat, error_format_for

# Every route: the request cannot be read, too many requests, too long a head, the database is not available.
_ALWAYS = (400, 414, 429, 431, 503)
_WITH_BODY = (408, 413, 415)

_TEXTS = {
    400: "The request is not valid; the text names the field and what is expected.",
    401: "The credentials are missing or not valid.",
    403: "The caller may not do this.",
    404: "There is no such record.",
    405: "The path has other methods.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with what is stored.",
    410: "The link or session has ended.",
    412: "The record was changed since it was read.",
    413: "The body is too long.",
    414: "The path is too long.",
    415: "The Content-Type or Content-Encoding is not supported.",
    422: "A field of the form is not valid; the page says what is wrong.",
    426: "The request must be an upgrade to a WebSocket.",
    429: "Too many requests; try again after `Retry-After` seconds.",
    431: "The headers are too long.",
    503: "The service is not available for a moment; try again after `Retry-After` seconds.",
}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}

_FIELD = {
    "type": "array",
    "items": {"type": ["string", "integer"]},
    "description": "In the management API, the path of the field that the text is about.",
    "examples": [["redirect_uris", 0]],
}
ENVELOPE_ERROR: JsonSchema = properties(
    ("status", "error"),
    status={"type": "string", "const": "ERROR"},
    error={"type": "string"},
    otp={"type": "array", "items": STRING},
    field=_FIELD,
    expected={"type": "string", "description": "What that field must be."},
    failed_assertions={"type": "array", "items": OBJECT},
)
OAUTH_ERROR: JsonSchema = properties(("error",), error={"type": "string"}, error_description={"type": "string"})
ERRORS = {"Error": ENVELOPE_ERROR, "OAuthError": OAUTH_ERROR}
_EXAMPLES = {
    ErrorFormat.ENVELOPE: {"status": "ERROR", "error": "limit: must be at most 200"},
    ErrorFormat.OAUTH: {"error": "invalid_request", "error_description": "grant_type is required"},
}


class ErrorResponses:
    """Refers to an error response as a component, which is added when it is first used."""

    def __init__(self) -> None:
        self.components: dict[str, Any] = {}

    def of(self, operation: ApiOperation) -> dict[str, Any]:
        statuses = {*_ALWAYS, *operation.errors, *(_WITH_BODY if operation.body else ())}
        error_format = error_format_for(operation.path)
        return {str(status): self._reference(error_format, status) for status in sorted(statuses)}

    def _reference(self, error_format: ErrorFormat, status: int) -> dict[str, str]:
        name = f"{error_format.value.title()}Error{status}"
        if name not in self.components:
            self.components[name] = _response(error_format, status)
        return {"$ref": f"#/components/responses/{name}"}


def _response(error_format: ErrorFormat, status: int) -> dict[str, Any]:
    # A request that the HTTP server itself rejects has the envelope at every path.
    json: dict[str, Any] = {"schema": _reference("Error")}
    if error_format is ErrorFormat.OAUTH:
        json = {"schema": {"anyOf": [_reference("OAuthError"), _reference("Error")]}}
    if example := _EXAMPLES.get(error_format):
        json["example"] = example
    content = {JSON_BODY: json}
    if error_format is ErrorFormat.PAGE:
        content = {HTML: {"schema": {"type": "string"}}, **content}
    headers = {"headers": _RETRY} if status in (429, 503) else {}
    return {"description": _TEXTS[status], "content": content, **headers}


def _reference(name: str) -> JsonSchema:
    return {"$ref": REFERENCE + name}
