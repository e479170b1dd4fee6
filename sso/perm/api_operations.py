"""Describes the endpoints of permissions. Most of them have an ``action``, and each action a schema of its body."""

from sso.change_stream.revision_headers import DEMAND, STATEMENT
from sso.perm import api_answers as answers
from sso.perm.api_resources import RESOURCES
from sso.perm.api_schemas import (
    APPLICATION_ID,
    CHECK,
    PREFIX,
    PROJECT_ID,
    ROLES,
    SECTIONS,
    TAG,
    TAGS,
    USER_ID,
    action,
    actions,
    endpoint,
    fields_of,
)
from sso.perm.authzen.api_operations import OPERATIONS as AUTHZEN
from sso.perm.input.audit import AuditFilterFields
from sso.perm.input.options import UserDataOptions
from sso.perm.input.roles import RoleFields
from sso.perm.routes import ExchangeRequest
from sso.web.api_description import (
    OBJECT,
    STRING,
    ApiBody,
    ApiOperation,
    ApiParameter,
    envelope,
    ok,
    properties,
)

_OF_APPLICATION = properties(("application_id",), application_id=APPLICATION_ID)
_TAGS = properties(("tags",), tags=TAGS)
_PROJECT = properties(("id",), id=PROJECT_ID)
_IF_MATCH = ApiParameter("If-Match", "The version of the schema that was read.", "header")
_APPLICATION_EXAMPLE = {"status": "OK", "data": {"application_id": 100, "name": "chat", "project_id": "p1"}}
_ROLE = {"name": "moderator", "meta": {"private_data": {"chat": {"kick": {"value": True}}}}}

_APPLICATION_SETTINGS = (
    endpoint(
        "/accessKey",
        "List, create or delete access keys",
        actions(
            action("get", ("application_id",), application_id=APPLICATION_ID),
            action(
                "save",
                ("application_id", "data"),
                application_id=APPLICATION_ID,
                data=properties(comment={**STRING, "maxLength": 256}),
            ),
            action(
                "delete",
                ("application_id", "data"),
                application_id=APPLICATION_ID,
                data=properties(("id",), id={**STRING, "minLength": 1, "maxLength": 64}),
            ),
        ),
        answers.ACCESS_KEYS,
        {"create": {"action": "save", "application_id": 100, "data": {"comment": "game server"}}},
        {"status": "OK", "data": {"id": "k1", "key": "…", "comment": "game server"}},
    ),
    endpoint(
        "/roles",
        "Read, save or delete roles",
        actions(
            action("get", ("application_id",), application_id=APPLICATION_ID, data=OBJECT),
            action("save", ("application_id", "data"), application_id=APPLICATION_ID, data=fields_of(RoleFields)),
            action("delete", ("application_id", "data"), application_id=APPLICATION_ID, data=properties(name=STRING)),
        ),
        answers.ROLES,
        {"save": {"action": "save", "application_id": 100, "data": _ROLE}},
        {"status": "OK", "data": _ROLE},
    ),
    endpoint(
        "/meta/schema",
        "Read or save the schema of an application",
        actions(
            action("get", ("application_id",), application_id=APPLICATION_ID),
            action(
                "save",
                ("application_id", "data"),
                application_id=APPLICATION_ID,
                data=properties(roles=OBJECT, **SECTIONS),
            ),
        ),
        answers.SCHEMA,
        {"read": {"action": "get", "application_id": 100}},
        {"status": "OK", "data": {"application_id": 100, "version": 3, "private_data": {}}},
        parameters=(_IF_MATCH,),
    ),
    endpoint(
        "/meta/data",
        "Read or save the permissions of a user",
        actions(
            action(
                "get",
                ("data",),
                application_id=APPLICATION_ID,
                data=properties(user_id=USER_ID, type={"enum": ["list", "list_short", "tree", "roles"]}),
                options={"$model": UserDataOptions},
            ),
            action(
                "save",
                ("data",),
                application_id=APPLICATION_ID,
                expired={"type": "integer", "minimum": 0},
                data=properties(("user_id",), user_id=USER_ID, roles=ROLES, **SECTIONS),
            ),
        ),
        answers.PERMISSIONS,
        {
            "read": {"action": "get", "application_id": 100, "data": {"user_id": "1001", "type": "list"}},
            "assign a role": {
                "action": "save",
                "application_id": 100,
                "data": {"user_id": "1001", "roles": ["moderator"]},
            },
        },
        {"status": "OK", "data": ["private_data.chat.kick"], "user_id": "1001", "expired": 0},
        more={"user_id": STRING, "expired": {"type": "integer"}, "explain": OBJECT},
        description="`options.explain` adds the reasons: true for all rules, or the name of one.",
    ),
    endpoint(
        "/check",
        "Check whether users have rules",
        CHECK,
        answers.CHECKED,
        {
            "two users": {
                "data": {
                    "questions": [
                        {"user_id": "1001", "application_id": 100, "rule": "chat.kick"},
                        {"user_id": "1002", "application_id": 100, "rule": "shop.buy", "param": "gold"},
                    ]
                }
            }
        },
        {"status": "OK", "data": [{"allow": True}, {"allow": False}]},
        description="The answers have the order of the questions. One that the caller may not ask has an `error`.",
        parameters=(DEMAND,),
        headers=STATEMENT,
    ),
    endpoint(
        "/audit",
        "Read the audit trail of a project or application",
        properties(data={"$model": AuditFilterFields}),
        answers.AUDIT,
        {"project": {"data": {"project_id": "space_game", "most": 20}}},
        {
            "status": "OK",
            "data": [
                {
                    "id": 17,
                    "at": "2026-11-15T05:18:09Z",
                    "operation": "role.save",
                    "user_id": "1001",
                    "target": "100/moderator",
                }
            ],
        },
    ),
)
_KEY_ITEM = properties(("id",), id=STRING, data=STRING)

OPERATIONS = (
    *RESOURCES,
    *_APPLICATION_SETTINGS,
    *AUTHZEN,
    ApiOperation(
        "GET",
        f"{PREFIX}/application/publicKeys/<app_id>",
        TAG,
        "Read the public keys of an application",
        {
            200: ok(
                "The keys.",
                envelope(("keys",), keys={"type": "array", "items": _KEY_ITEM}),
                {"status": "OK", "keys": [{"id": "app-100-1", "data": "-----BEGIN PUBLIC KEY-----…"}]},
            )
        },
        errors=(404,),
    ),
    ApiOperation(
        "GET",
        f"{PREFIX}/application/publicKey/<key_id>",
        TAG,
        "Read a public key",
        {
            200: ok(
                "The key.",
                envelope(("key",), key=_KEY_ITEM),
                {"status": "OK", "key": {"id": "2026-11", "data": "-----BEGIN PUBLIC KEY-----…"}},
            )
        },
        errors=(404,),
    ),
    ApiOperation(
        "POST",
        "/proxy/oauth/exchangeJwt",
        TAG,
        "Renew a user JWT",
        {200: ok("The new JWT.", envelope(("jwt",), jwt=STRING), {"status": "OK", "jwt": "eyJhbGciOi…"})},
        "For servers of applications, with an access key.",
        (),
        ApiBody(ExchangeRequest, examples={"renew": {"jwt": "eyJhbGciOi…", "factor": "device-1"}}),
        (401, 403),
        (("accessKey",),),
    ),
)
