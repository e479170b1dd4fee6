"""Describes the endpoints of AuthZEN."""

from typing import Any

from msgspec.structs import replace

from sso.change_stream.revision_headers import DEMAND, STATEMENT
from sso.perm.authzen.evaluations import SEMANTICS
from sso.perm.authzen.routes import EVALUATION, EVALUATIONS, METADATA, SEARCH_ACTION, SEARCH_RESOURCE, SEARCH_SUBJECT
from sso.perm.authzen.search import DEFAULT_LIMIT, MAX_LIMIT
from sso.perm.input.options import MAX_RULE_NAME
from sso.perm.input.questions import MAX_QUESTIONS, MAX_QUESTIONS_WITH_REASON
from sso.perm.input.validators import MAX_TEXT
from sso.web.api_description import (
    JSON_BODY,
    OBJECT,
    STRING,
    ApiBody,
    ApiOperation,
    ApiParameter,
    JsonSchema,
    ok,
    properties,
)

TAG = "AuthZEN"


def _described(description: str, required: tuple[str, ...] = (), **members: JsonSchema) -> JsonSchema:
    return properties(required, **members) | {"description": description}


_NAME: JsonSchema = {**STRING, "minLength": 1, "maxLength": MAX_TEXT}
_SUBJECT = _described(
    "Who is asked about.",
    ("type", "id"),
    type={"type": "string", "description": "`user`. The decision about other types is false."},
    id={**_NAME, "description": "The id or the login of the user. Users can name others by their id only."},
)
_ACTION = _described(
    "What the user would do.",
    ("name",),
    name={"type": "string", "minLength": 1, "maxLength": MAX_RULE_NAME, "description": "A rule, such as `chat.kick`."},
    properties=_described(
        "Details of the action.", param={**STRING, "maxLength": MAX_TEXT, "description": "The rule must cover it."}
    ),
)
_RESOURCE = _described(
    "Where the user would do it.",
    ("type", "id"),
    type={"type": "string", "description": "`application` or `project`. The decision about other types is false."},
    id={**_NAME, "description": "The id of the application, or the id or an alias of the project."},
    properties=_described(
        "Details of the resource.",
        project_id={**STRING, "minLength": 1, "maxLength": 64, "description": "The application must belong to it."},
    ),
)
_CONTEXT = _described(
    "How the question is answered.",
    reason={
        "type": "boolean",
        "description": f"Explain the decision. At most {MAX_QUESTIONS_WITH_REASON} in one request.",
    },
    at={"type": "integer", "minimum": 0, "description": "Decide as of this Unix time of the past."},
)
_PARTS = {"subject": _SUBJECT, "action": _ACTION, "resource": _RESOURCE, "context": _CONTEXT}
_DECISION = properties(
    ("decision",),
    decision={"type": "boolean", "description": "Whether the user has the rule."},
    context=_described(
        "More about the decision.",
        reason={**OBJECT, "description": "Why the user has the rule or not."},
        error=_described(
            "Why the question was not answered.",
            ("status", "message"),
            status={"type": "integer", "description": "The HTTP status that a request for the permissions would get."},
            message={**STRING, "description": "The error of that request."},
        ),
    ),
)
_DECISIONS = {"type": "array", "items": _DECISION, "description": "The decisions, in the order of the questions."}
_FOUND_ACTION = properties(
    ("name",),
    name={**STRING, "description": "A rule."},
    properties=_described(
        "Details of the rule.",
        params={"type": "array", "items": STRING, "description": "What the rule is limited to."},
    ),
)
_PAGE = _described(
    "Which part of the results is wanted.",
    limit={
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_LIMIT,
        "default": DEFAULT_LIMIT,
        "description": "How many results.",
    },
    token={"type": "string", "description": "`next_token` of the page before."},
)
_FOUND_PAGE = _described(
    "Where these results are among all.",
    ("next_token", "count"),
    next_token={**STRING, "description": "For the next page; empty if this is the last one."},
    count={"type": "integer", "description": "How many results this page has."},
)
_SEARCHED = {
    "subject": _described("Who is searched for.", ("type",), type={**STRING, "description": "`user`."}),
    "resource": _described(
        "Where is searched.", ("type",), type={**STRING, "description": "`application` or `project`."}
    ),
}
_FOUND_ENTITY = properties(
    ("type", "id"),
    type={**STRING, "description": "The type that was searched for."},
    id={**STRING, "description": "The id."},
)
_REQUEST: dict[str, Any] = {
    "subject": {"type": "user", "id": "1001"},
    "action": {"name": "chat.kick"},
    "resource": {"type": "application", "id": "100"},
}
_REQUEST_ID = ApiParameter("X-Request-ID", "An id of the client, which the response repeats.", "header")
_SECURITY = (("accessKey",), ("serviceToken",), ("userJwt", "factor"))


def _post(
    path: str, summary: str, body: JsonSchema, answer: JsonSchema, example: Any, answered: Any, description: str
) -> ApiOperation:
    return ApiOperation(
        "POST",
        path,
        TAG,
        summary,
        {200: replace(ok("The answer.", answer, answered), headers=STATEMENT)},
        description,
        (_REQUEST_ID, DEMAND),
        ApiBody(body, (JSON_BODY,), {"request": example}),
        (401, 403),
        _SECURITY,
    )


def _search(path: str, summary: str, searched: str, answered: Any) -> ApiOperation:
    """The search for subjects or resources: the request has the type of what is searched for, and the rest."""
    return _post(
        path,
        summary,
        properties(("subject", "action", "resource"), **{**_PARTS, searched: _SEARCHED[searched]}, page=_PAGE),
        properties(
            ("results", "page"),
            results={"type": "array", "items": _FOUND_ENTITY, "description": "What was found, sorted by id."},
            page=_FOUND_PAGE,
        ),
        {**_REQUEST, searched: {"type": _REQUEST[searched]["type"]}},
        {"results": [answered], "page": {"next_token": "", "count": 1}},
        "A page may have fewer results than its limit, or none, and a next page.",
    )


OPERATIONS = (
    ApiOperation(
        "GET",
        METADATA,
        TAG,
        "Read the addresses of the AuthZEN endpoints",
        {
            200: ok(
                "The metadata.",
                properties(
                    ("policy_decision_point", "access_evaluation_endpoint"),
                    policy_decision_point={**STRING, "description": "The address of this service."},
                    access_evaluation_endpoint={**STRING, "description": "Decides one question."},
                    access_evaluations_endpoint={**STRING, "description": "Decides several questions."},
                    search_subject_endpoint={**STRING, "description": "Lists the users who have a rule."},
                    search_resource_endpoint={**STRING, "description": "Lists where a user has a rule."},
                    search_action_endpoint={**STRING, "description": "Lists the rules that a user has."},
                ),
                {
                    "policy_decision_point": "https://sso.example.com",
                    "access_evaluation_endpoint": f"https://sso.example.com{EVALUATION}",
                },
            )
        },
    ),
    _post(
        EVALUATION,
        "Decide whether a user has a rule",
        properties(("subject", "action", "resource"), **_PARTS),
        _DECISION,
        _REQUEST,
        {"decision": True},
        "A question that the caller may not ask is denied, with the error in `context`.",
    ),
    _post(
        EVALUATIONS,
        "Decide several questions",
        properties(
            evaluations={
                "type": "array",
                "maxItems": MAX_QUESTIONS,
                "items": properties(**_PARTS),
                "description": "The questions.",
            },
            options=_described(
                "How several questions are answered.",
                evaluations_semantic={
                    "type": "string",
                    "enum": list(SEMANTICS),
                    "description": "Answer all questions, or stop after the first denial or permission.",
                },
            ),
            **_PARTS,
        ),
        {"anyOf": [properties(("evaluations",), evaluations=_DECISIONS), _DECISION]},
        {**_REQUEST, "evaluations": [{"action": {"name": "chat.kick"}}, {"action": {"name": "chat.ban"}}]},
        {"evaluations": [{"decision": True}, {"decision": False}]},
        "What an evaluation lacks is taken from the request itself. Without evaluations, the request is one.",
    ),
    _post(
        SEARCH_ACTION,
        "List the rules that a user has",
        properties(
            ("subject", "resource"),
            subject=_SUBJECT,
            resource=_RESOURCE,
            context=_CONTEXT,
            page=_PAGE,
        ),
        properties(
            ("results", "page"),
            results={"type": "array", "items": _FOUND_ACTION, "description": "The rules, sorted by name."},
            page=_FOUND_PAGE,
        ),
        {"subject": _REQUEST["subject"], "resource": _REQUEST["resource"]},
        {"results": [{"name": "chat.kick"}], "page": {"next_token": "", "count": 1}},
        "A rule that is limited to parameters has them in its properties.",
    ),
    _search(SEARCH_SUBJECT, "List the users who have a rule", "subject", {"type": "user", "id": "1001"}),
    _search(SEARCH_RESOURCE, "List where a user has a rule", "resource", {"type": "application", "id": "100"}),
)
