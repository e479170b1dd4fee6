"""Descriptions of routes for the OpenAPI document: what a request contains and what may be answered.

A package lists its routes in a module ``api_operations``. A schema is the pydantic model that validates the value, or a
JSON schema. Paths are written as the router has them. The document builder adds the errors that every route may have.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field
from pydantic import BaseModel

JSON_BODY, FORM_BODY = "application/json", "application/x-www-form-urlencoded"
HTML, TEXT = "text/html", "text/plain"

JsonSchema: TypeAlias = dict[str, Any]
# A model, a TypedDict or another type that pydantic knows, or a JSON schema.
SchemaSource: TypeAlias = Any
Security: TypeAlias = Sequence[Sequence[str]]  # alternatives, each with the names of its schemes; () means none

STRING: JsonSchema = {"type": "string"}
OBJECT: JsonSchema = {"type": "object"}


class ApiParameter(Struct, frozen=True):
    name: str
    description: str = ""
    location: str = "query"  # query, header, path or cookie
    schema: JsonSchema = field(default_factory=lambda: STRING)
    required: bool = False


class ApiBody(Struct, frozen=True):
    schema: SchemaSource
    media_types: Sequence[str] = (JSON_BODY, FORM_BODY)
    examples: Mapping[str, Any] = field(default_factory=dict)
    required: bool = True


class ApiResponse(Struct, frozen=True):
    description: str
    schema: SchemaSource | None = None  # None: no body
    media_type: str = JSON_BODY
    example: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)  # the names of headers, and what they hold
    other_types: Mapping[str, SchemaSource] = field(default_factory=dict)  # if the client asks for them with Accept


class ApiOperation(Struct, frozen=True):
    method: str
    path: str
    tag: str
    summary: str
    responses: Mapping[int, ApiResponse]
    description: str = ""
    parameters: Sequence[ApiParameter] = ()
    body: ApiBody | None = None
    errors: Sequence[int] = ()  # besides the errors of every route
    security: Security = ()
    query: type[BaseModel] | None = None  # the model of the query, besides ``parameters``
    # The name of the operation in generated clients. Without one, it is made from the method and the path.
    operation_id: str = ""
    is_page: bool = False  # for people; the document for programs leaves it out


def ok(description: str, schema: SchemaSource | None = None, example: Any = None, **headers: str) -> ApiResponse:
    """A JSON response. Names of headers are written with underscores."""
    return ApiResponse(
        description,
        schema if schema is not None else OBJECT,
        example=example,
        headers={name.replace("_", "-"): text for name, text in headers.items()},
    )


def properties(required: Sequence[str] = (), /, **schemas: JsonSchema) -> JsonSchema:
    """The schema of an object with these members; it may have more."""
    return {"type": "object", "properties": schemas, **({"required": list(required)} if required else {})}


def envelope(required: Sequence[str] = (), /, **members: JsonSchema) -> JsonSchema:
    """The schema of a successful response with ``status`` OK and these members."""
    return properties(("status", *required), status={"type": "string", "const": "OK"}, **members)


# The two answers of a page: the page itself, and a redirect to another one.
PAGE = ApiResponse("A page.", STRING, HTML)
REDIRECT = ApiResponse("The next page.", headers={"Location": "the address of the next page"})


def page(
    path: str,
    tag: str,
    summary: str,
    *query: str,
    errors: Sequence[int] = (),
    security: Security = (),
    redirect: int = 303,
) -> ApiOperation:
    """A page for people, with the names of its query parameters."""
    parameters = [ApiParameter(name, _FIELD_TEXTS.get(name, "")) for name in query]
    answers = {200: PAGE, redirect: REDIRECT}
    return ApiOperation("GET", path, tag, summary, answers, "", parameters, None, errors, security, is_page=True)


def form(
    path: str,
    tag: str,
    summary: str,
    *fields: str,
    errors: Sequence[int] = (),
    security: Security = (),
    query: Sequence[str] = (),
    responses: Mapping[int, ApiResponse] | None = None,
) -> ApiOperation:
    """A form of a page, with the names of its fields. Every form has the field ``csrf`` of the page that shows it."""
    names = ("csrf", *fields)
    schema = properties(**{name: {**STRING, "description": _FIELD_TEXTS.get(name, "")} for name in names})
    parameters = [ApiParameter(name, _FIELD_TEXTS.get(name, "")) for name in query]
    answers = {200: PAGE, 303: REDIRECT, **(responses or {})}
    example = {name: _FIELD_EXAMPLES.get(name, name) for name in names}
    body = ApiBody(schema, (FORM_BODY,), {"example": example}, required=False)
    errors = (401, 403, 415, *errors)
    return ApiOperation("POST", path, tag, summary, answers, "", parameters, body, errors, security, is_page=True)


_FIELD_EXAMPLES = {
    "csrf": "the token of the page",
    "login": "ann@example.com",
    "email": "ann@example.com",
    "next": "/account",
    "otp": "123456",
    "present_otp": "123456",
    "credential": "{}",
}
# The meaning of fields that several forms have.
_FIELD_TEXTS = {
    "csrf": "The token of the page that shows the form; a form of another site is refused.",
    "next": "The path of this service at which the sign-in continues.",
    "login": "The e-mail address of the account.",
    "password": "The password of the account.",
    "otp": "A code of the second factor, or a recovery code.",
    "credential": "The answer of a passkey, as JSON.",
    "token": "The secret of a link in a mail.",
    "current_password": "The password, to confirm an important change.",
    "present_otp": "A code of the present second factor, to confirm an important change.",
    "new_password": "The new password.",
    "repeat_password": "The new password again.",
    "nick": "The nickname, which other players see.",
    "email": "An e-mail address.",
    "user_code": "The code that the device shows.",
    "gsid": "The id of the game session.",
    "identity": "The token of the page for the identity that it shows; the form concerns no other one.",
    "lang": "A language tag, such as en or pt-BR.",
    "id": "The id of the item on the page.",
}
