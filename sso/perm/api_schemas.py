"""The parts of which the descriptions of permission endpoints consist."""

from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel

from sso.core.ids import MAX_APPLICATION_ID
from sso.perm.accepted_credentials import ENDPOINT_RULES, Subject
from sso.perm.api_answers import WRITE_MEMBERS
from sso.perm.input.options import MAX_RULE_NAME
from sso.perm.input.questions import MAX_QUESTIONS, MAX_QUESTIONS_WITH_REASON
from sso.perm.input.validators import MAX_TEXT
from sso.web.api_description import (
    JSON_BODY,
    STRING,
    ApiBody,
    ApiOperation,
    ApiParameter,
    JsonSchema,
    envelope,
    ok,
    properties,
)

TAG = "Permissions"
PREFIX = "/api/permissions"

APPLICATION_ID: JsonSchema = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MAX_APPLICATION_ID},
        {"type": "string", "pattern": "^[1-9][0-9]{0,9}$"},
    ]
}
GROUP_ID: JsonSchema = {"type": "string", "pattern": "^[0-9a-f]{24}$"}
PROJECT_ID: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 64, "description": "The id or an alias."}
USER_ID: JsonSchema = {"type": "string", "maxLength": 64}
TAGS: JsonSchema = {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9:_]{1,64}$"}}
ROLES: JsonSchema = {
    "type": "array",
    "maxItems": 1000,
    "items": {
        "anyOf": [STRING, properties(("name",), name=STRING, expired={"type": "integer"}, ttl={"type": "integer"})]
    },
}
WRITE_OPTIONS: JsonSchema = properties(
    dry_run={"type": "boolean", "description": "Change nothing, and show who would gain and lose which permissions."},
    override={"type": "boolean", "description": "Save even if an assertion of an application fails."},
)
SECTION: JsonSchema = {"type": "object", "description": "A tree of rules; see the documentation of permissions."}
SECTIONS = dict.fromkeys(("public_data", "private_data", "secret_data", "login"), SECTION)

_QUESTION = properties(
    ("rule",),
    user_id=USER_ID,
    application_id=APPLICATION_ID,
    rule={**STRING, "minLength": 1, "maxLength": MAX_RULE_NAME},
    param={**STRING, "maxLength": MAX_TEXT},
    project_id=PROJECT_ID,
)
CHECK = properties(
    ("data",),
    application_id=APPLICATION_ID,
    data=properties(("questions",), questions={"type": "array", "maxItems": MAX_QUESTIONS, "items": _QUESTION}),
    options=properties(
        reason={
            "type": "boolean",
            "description": f"Explain the answers. At most {MAX_QUESTIONS_WITH_REASON} questions are accepted then.",
        }
    ),
)


def fields_of(model: type[BaseModel], required: tuple[str, ...] = (), **more: JsonSchema) -> JsonSchema:
    """Returns the schema of ``data``: the fields of a model, and those that the endpoint reads itself."""
    return {"allOf": [{"$model": model}, properties(required, **more)]}


def action(name: str, required: tuple[str, ...] = (), **members: JsonSchema) -> JsonSchema:
    if name != "get":
        members = {"options": WRITE_OPTIONS, "override": {"type": "boolean"}} | members
    return properties(("action", *required), action={"type": "string", "const": name}, **members) | {"title": name}


def actions(*actions: JsonSchema) -> JsonSchema:
    return {"anyOf": list(actions)}


_FACTOR, _SERVICE, _KEY = ("userJwt", "factor"), ("userJwt", "serviceJwt"), ("userJwt", "accessKey")
_SECURITY = {
    Subject.PROJECT: (_FACTOR,),
    Subject.APPLICATION: (_FACTOR, _SERVICE, ("serviceJwt",)),
    Subject.USER_DATA: (_FACTOR, _SERVICE, ("serviceJwt",), _KEY, ("accessKey",)),
    Subject.CALLER: (_FACTOR, _SERVICE),
}
ACTION_HEADERS = (
    ApiParameter("Ip", "The address of the client that a server acts for; needs Signature.", "header"),
    ApiParameter("Signature", "The signature of an access key over Ip.", "header"),
)


_DONE = "Done. A get returns the record; a save returns it as stored."


def endpoint(
    path: str,
    summary: str,
    schema: JsonSchema,
    data: JsonSchema,
    examples: dict[str, Any],
    example: Any,
    more: dict[str, JsonSchema] | None = None,
    **options: Any,
) -> ApiOperation:
    response = envelope(data=data, **WRITE_MEMBERS, **(more or {}))
    return ApiOperation(
        "POST",
        PREFIX + path,
        TAG,
        summary,
        {200: replace(ok(_DONE, response, example), headers=options.get("headers", {}))},
        options.get("description", ""),
        (*ACTION_HEADERS, *options.get("parameters", ())),
        ApiBody(schema, (JSON_BODY,), examples),
        (401, 403, 404, 409),
        _SECURITY[ENDPOINT_RULES[path].subject],
    )
