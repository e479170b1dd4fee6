"""Builds the OpenAPI document from the descriptions of all routes."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from sso import __version__
from sso.accounts import api_operations as accounts
from sso.accounts.account_page import api_operations as account_page
from sso.admin.request import AdminRoute
from sso.device import api_operations as device
from sso.gsid import api_operations as gsid
from sso.keys import api_operations as keys
from sso.oauth import api_operations as oauth
from sso.openapi import service_operations
from sso.openapi.admin_operations import admin_operations
from sso.openapi.error_responses import ERRORS, ErrorResponses
from sso.openapi.field_texts import FIELDS
from sso.openapi.operation_ids import service_operation_id
from sso.openapi.schemas import SchemaComponents
from sso.perm import api_operations as perm
from sso.personal_data import api_operations as personal_data
from sso.players import api_operations as players
from sso.ssf import api_operations as ssf
from sso.upstream import api_operations as upstream
from sso.web.api_description import ApiBody, ApiOperation, ApiParameter, ApiResponse

SECURITY_SCHEMES = {
    "userJwt": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "The user JWT of POST /proxy/api/login.",
    },
    "factor": {
        "type": "apiKey",
        "in": "header",
        "name": "Factor",
        "description": "The device factor that was sent with the login.",
    },
    "serviceToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The access token of a service client (client_credentials) of the central application.",
    },
    "ssfToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "An access token of a service client with the scope `ssf.read` or `ssf.manage`.",
    },
    "serviceJwt": {
        "type": "apiKey",
        "in": "header",
        "name": "Service-Jwt",
        "description": "A JWT that the application has signed, or the access token of its service client.",
    },
    "accessKey": {"type": "http", "scheme": "bearer", "description": "An access key of the application."},
    "accessToken": {"type": "http", "scheme": "bearer", "description": "An access token of POST /proxy/oauth/token."},
    "dpopToken": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`DPoP`, a space, and an access token that is bound to a key.",
    },
    "dpopProof": {
        "type": "apiKey",
        "in": "header",
        "name": "DPoP",
        "description": "A JWT that is signed with that key (RFC 9449).",
    },
    "clientBasic": {
        "type": "http",
        "scheme": "basic",
        "description": "client_id and client_secret. Clients may send them, or client_assertion, in the body instead.",
    },
    "strictBearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "Strict clients: the SHA-1 of redirect_uri and client_secret, in hexadecimal.",
    },
    "sessionCookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sso_session",
        "description": "The session of a browser. With https, the name begins with `__Host-`.",
    },
}

INTRODUCTION = """\
Single sign-on and permissions. [openapi.json](/openapi.json) is this document for programs.

Bodies are JSON or, where it is listed, a form. Errors under `/api/` and `/proxy/api/` are
`{"status": "ERROR", "error": "…"}`, errors under `/proxy/oauth/` and `/ssf/` are
`{"error": "…", "error_description": "…"}`, and other paths answer with a page. Every response has the header
`X-Request-Id`, which identifies its line in the log.
"""

TAGS = {
    "Management": "Users, applications, clients, keys and the audit trail, for administrators and their programs.",
    "Permissions": "Applications, projects, groups, roles, schemas, and the effective permissions of users.",
    "AuthZEN": "The same questions about permissions in the form of the Authorization API 1.0.",
    "Login": "Sign-in of programs with a password or a session token.",
    "Game sessions": "Sign-in from a game, which the player confirms in a browser.",
    "OAuth and OpenID Connect": "Sign-in to sites and devices, and tokens of service clients.",
    "Shared Signals": "Streams of events about the users of a client, which it polls or which are pushed to it.",
    "Keys": "The public keys that verify tokens.",
    "Sign-in pages": "Pages on which people sign in and register.",
    "Account page": "The page on which people change their account.",
    "Service": "Health, metrics, and files of the pages.",
}

_DESCRIBED = (
    accounts, oauth, device, ssf, gsid, players, perm, keys, account_page, personal_data, upstream, service_operations,
)  # fmt: skip
_PATH_PARAMETER = re.compile(r"<(?:[^:<>]+:)?([^<>]+)>")


def all_operations(admin_routes: Iterable[AdminRoute], components: SchemaComponents) -> Iterator[ApiOperation]:
    yield from admin_operations(admin_routes, components)
    for module in _DESCRIBED:
        yield from module.OPERATIONS


def build_document(name: str, admin_routes: Iterable[AdminRoute], *, with_pages: bool = False) -> bytes:
    """Pages for people are left out; tests send requests to them as well."""
    builder = _Builder()
    for error, schema in ERRORS.items():
        builder.schemas.add(error, schema)
    for operation in all_operations(admin_routes, builder.schemas):
        if with_pages or not operation.is_page:
            builder.add(operation)
    used = {tag for item in builder.paths.values() for operation in item.values() for tag in operation["tags"]}
    return orjson.dumps(
        {
            "openapi": "3.1.0",
            "info": {
                "title": f"{name} API",
                "version": __version__,
                "description": INTRODUCTION,
            },
            "servers": [{"url": "/"}],
            "tags": [{"name": tag, "description": text} for tag, text in TAGS.items() if tag in used],
            "paths": builder.paths,
            "components": {
                "schemas": builder.schemas.components,
                "responses": builder.errors.components,
                "securitySchemes": SECURITY_SCHEMES,
            },
        }
    )


def document_path(rule: str) -> str:
    """Returns a path of the router as the document has it: ``/users/{user_id}``."""
    return _PATH_PARAMETER.sub(r"{\1}", rule)


class _Builder:
    def __init__(self) -> None:
        self.paths: dict[str, dict[str, Any]] = {}
        self.schemas = SchemaComponents()
        self.errors = ErrorResponses()

    def add(self, operation: ApiOperation) -> None:
        path = document_path(operation.path)
        item = self.paths.setdefault(path, {})
        method = operation.method.lower()
        assert method not in item, f"{operation.method} {path} is described twice"
        responses = {str(status): self._response(answer) for status, answer in sorted(operation.responses.items())}
        described: dict[str, Any] = {
            "operationId": operation.operation_id or service_operation_id(method, path),
            "tags": [operation.tag],
            "summary": operation.summary,
            "responses": responses | self.errors.of(operation),
        }
        if operation.description:
            described["description"] = operation.description
        if parameters := list(self._parameters(operation)):
            described["parameters"] = parameters
        if operation.body:
            described["requestBody"] = self._body(operation.body)
        if operation.security:
            described["security"] = [{name: [] for name in names} for names in operation.security]
        item[method] = described

    def _parameters(self, operation: ApiOperation) -> Iterator[dict[str, Any]]:
        for name in _PATH_PARAMETER.findall(operation.path):
            yield _parameter(ApiParameter(name, "", "path", {"type": "string", "minLength": 1}, required=True))
        if operation.query:
            yield from self.schemas.query_parameters(operation.query)
        yield from map(_parameter, operation.parameters)

    def _body(self, body: ApiBody) -> dict[str, Any]:
        content: dict[str, Any] = {"schema": self.schemas.reference(body.schema)}
        if body.examples:
            content["examples"] = {name: {"value": value} for name, value in body.examples.items()}
        return {"required": body.required, "content": dict.fromkeys(body.media_types, content)}

    def _response(self, answer: ApiResponse) -> dict[str, Any]:
        response: dict[str, Any] = {"description": answer.description}
        if answer.headers:
            response["headers"] = {
                name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()
            }
        if answer.schema is not None:
            content: dict[str, Any] = {"schema": self.schemas.reference(answer.schema)}
            if answer.example is not None:
                content["example"] = answer.example
            others = {name: {"schema": self.schemas.reference(schema)} for name, schema in answer.other_types.items()}
            response["content"] = {answer.media_type: content, **others}
        return response


def _parameter(parameter: ApiParameter) -> dict[str, Any]:
    described: dict[str, Any] = {"name": parameter.name, "in": parameter.location, "schema": parameter.schema}
    if text := parameter.description or FIELDS.get(parameter.name):
        described["description"] = text
    if parameter.required:
        described["required"] = True
    return described
