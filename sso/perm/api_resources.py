"""Describes the permission endpoints of applications, projects and groups."""

from sso.perm import api_answers as answers
from sso.perm.api_schemas import (
    APPLICATION_ID,
    GROUP_ID,
    PROJECT_ID,
    TAGS,
    USER_ID,
    WRITE_OPTIONS,
    action,
    actions,
    endpoint,
    fields_of,
)
from sso.perm.input.application import ApplicationFields
from sso.perm.input.groups import GroupFields
from sso.perm.input.project import ProjectFields
from sso.web.api_description import (
    OBJECT,
    STRING,
    ApiParameter,
    properties,
)

_OF_APPLICATION = properties(("application_id",), application_id=APPLICATION_ID)
_TAGS = properties(("tags",), tags=TAGS)
_PROJECT = properties(("id",), id=PROJECT_ID)
_IF_MATCH = ApiParameter("If-Match", "The version of the schema that was read.", "header")
_APPLICATION_EXAMPLE = {"status": "OK", "data": {"application_id": 100, "name": "chat", "project_id": "p1"}}
_ROLE = {"name": "moderator", "meta": {"private_data": {"chat": {"kick": {"value": True}}}}}

RESOURCES = (
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
        {
            "status": "OK",
            "data": {
                "id": "0123456789abcdef01234567",
                "project_id": "space_game",
                "title": "Testers",
                "tags": ["project"],
            },
        },
    ),
)
