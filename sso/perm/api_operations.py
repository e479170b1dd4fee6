"""Describes the endpoints of permissions. Most of them have an ``action``, and each action a schema of its body."""

from sso.perm import api_answers as answers
from sso.perm.api_schemas import (
    APPLICATION_ID,
    CHECK,
    GROUP_ID,
    PREFIX,
    PROJECT_ID,
    ROLES,
    SECTIONS,
    TAG,
    TAGS,
    USER_ID,
    WRITE_OPTIONS,
    action,
    actions,
    endpoint,
    fields_of,
)
from sso.perm.input.application import ApplicationFields
from sso.perm.input.audit import AuditFilterFields
from sso.perm.input.groups import GroupFields
from sso.perm.input.options import UserDataOptions
from sso.perm.input.project import ProjectFields
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

_RESOURCES = (
    endpoint(
        "/application",
        "Read, save or remove an application",
        actions(
            action("get", ("data",), data=_OF_APPLICATION, options=properties(full={"type": "boolean"})),
            action("save", ("data",), data=fields_of(ApplicationFields, application_id=APPLICATION_ID)),
            action("delete", ("data",), data=_OF_APPLICATION),
        ),
        answers.APPLICATION,
        {
            "create": {"action": "save", "data": {"name": "chat", "project_id": "p1"}},
            "read": {"action": "get", "data": {"application_id": 100}},
        },
        _APPLICATION_EXAMPLE,
    ),
    endpoint(
        "/application/tags",
        "Set the tags of an application",
        properties(("application_id", "data"), application_id=APPLICATION_ID, data=_TAGS, options=WRITE_OPTIONS),
        answers.APPLICATION,
        {"tags": {"application_id": 100, "data": {"tags": ["eu"]}}},
        _APPLICATION_EXAMPLE,
    ),
    endpoint(
        "/user/info",
        "Count the projects of the caller",
        OBJECT,
        answers.NOTHING,
        {"count": {}},
        {"status": "OK", "projects": 2},
        more={"projects": {"type": "integer", "description": "How many projects the caller has created."}},
    ),
    endpoint(
        "/publish",
        "Create a project",
        properties(
            ("project",),
            project={**STRING, "maxLength": 32},
            user={**STRING, "maxLength": 320},
            options=WRITE_OPTIONS,
        ),
        answers.PROJECT,
        {"project": {"project": "Space Game"}},
        {"status": "OK", "data": {"id": "space_game", "title": "Space Game"}},
    ),
    endpoint(
        "/project",
        "Read, save or remove a project",
        actions(
            action("get", ("data",), data=_PROJECT),
            action("save", ("data",), data=fields_of(ProjectFields, ("id",), id=PROJECT_ID)),
            action("delete", ("data",), data=_PROJECT),
        ),
        answers.PROJECT,
        {"read": {"action": "get", "data": {"id": "space_game"}}},
        {"status": "OK", "data": {"id": "space_game", "title": "Space Game"}},
    ),
    endpoint(
        "/project/membership",
        "Read or save the members of a project",
        actions(
            action("get", ("data",), data=_PROJECT),
            action(
                "save",
                ("data",),
                data=properties(
                    ("id",),
                    id=PROJECT_ID,
                    users={"type": "array", "items": properties(("user_id",), user_id=USER_ID, roles=OBJECT)},
                    allow={"type": "array", "items": GROUP_ID},
                    disallow={"type": "array", "items": GROUP_ID},
                ),
            ),
        ),
        answers.MEMBERSHIP,
        {"read": {"action": "get", "data": {"id": "space_game"}}},
        {"status": "OK", "data": {"id": "space_game", "users": [], "allow": [], "disallow": []}},
    ),
    endpoint(
        "/group",
        "Read, save or remove groups",
        actions(
            action("get", ("data",), data=properties(("project_id",), project_id=PROJECT_ID)),
            action("save", ("data",), group_id=GROUP_ID, data=fields_of(GroupFields, project_id=PROJECT_ID)),
            action("delete", ("group_id",), group_id=GROUP_ID),
        ),
        answers.GROUPS,
        {"read": {"action": "get", "data": {"project_id": "space_game"}}},
        {"status": "OK", "data": {"groups": [], "max_users_cnt": 100}},
    ),
    endpoint(
        "/group/access",
        "Set the users and conditions of a group",
        properties(
            ("group_id", "data"),
            group_id=GROUP_ID,
            options=WRITE_OPTIONS,
            data=properties(
                users={"type": "array", "items": USER_ID},
                conditions={
                    "type": "array",
                    "items": properties(("title", "condition"), title=STRING, condition=OBJECT),
                },
            ),
        ),
        answers.GROUP_ACCESS,
        {"users": {"group_id": "0123456789abcdef01234567", "data": {"users": ["1001"]}}},
        {"status": "OK", "data": {"id": "0123456789abcdef01234567", "users": ["1001"], "conditions": []}},
    ),
    endpoint(
        "/group/tags",
        "Set the tags of a group",
        properties(("group_id", "data"), group_id=GROUP_ID, data=_TAGS, options=WRITE_OPTIONS),
        answers.GROUP,
        {"tags": {"group_id": "0123456789abcdef01234567", "data": {"tags": ["project"]}}},
        {"status": "OK", "data": {"id": "0123456789abcdef01234567", "tags": ["project"]}},
    ),
)
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
    ),
    endpoint(
        "/audit",
        "Read the audit trail of a project or application",
        properties(data={"$model": AuditFilterFields}),
        answers.AUDIT,
        {"project": {"data": {"project_id": "space_game", "most": 20}}},
        {"status": "OK", "data": [{"id": 17, "operation": "role.save", "user_id": "1001", "target": "100/moderator"}]},
    ),
)
_KEY_ITEM = properties(("id",), id=STRING, data=STRING)

OPERATIONS = (
    *_RESOURCES,
    *_APPLICATION_SETTINGS,
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
