"""The text of a 403 names the missing right, and is the same whether or not the object exists."""

from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiUser, Studio

NO_APPLICATION = 2**31 - 1
NO_GROUP = "0" * 24
MANAGE_APPLICATIONS = "project.can_manage_applications"


@pytest.fixture(scope="module")
def ann(studio: Studio) -> ApiUser:
    """A user without any right."""
    return studio.user()


class Targets:
    def __init__(self, studio: Studio) -> None:
        self.project = studio.project()
        self.application = studio.application(self.project)
        self.homeless = studio.application()
        self.removed = studio.application(self.project)
        self.group = studio.group(self.project)
        studio.root.call("application", action="delete", data={"application_id": self.removed})
        self.removed_project = studio.removed_project()


@pytest.fixture(scope="module")
def targets(studio: Studio) -> Targets:
    return Targets(studio)


def refusal(user: ApiUser, path: str, **body: Any) -> str:
    response = user.call(path, **body)
    assert response.status == 403, response.body
    return str(response.body["error"])


@pytest.mark.parametrize(
    ("path", "action", "data", "right"),
    [
        ("application", "get", {}, f"{MANAGE_APPLICATIONS}, canRead or a role on the application is required"),
        ("application", "save", {"name": "x"}, f"{MANAGE_APPLICATIONS} or canSave is required"),
        ("application", "delete", {}, f"can_remove_apps or {MANAGE_APPLICATIONS} is required"),
        ("application", "save", {"service_meta": {"env": "x"}}, "can_publish_services is required"),
        ("application/tags", None, {"tags": []}, "can_publish_services is required"),
        ("accessKey", "get", {}, "canCreateJwt or app.can_manage_app_api_keys is required"),
        ("accessKey", "save", {}, "canCreateJwt or app.can_manage_app_api_keys is required"),
        ("roles", "get", {"name": "x"}, "canReadSchema is required"),
        ("roles", "get", {}, "canSeeRoleList or canReadSchema is required"),
        ("roles", "save", {"name": "x"}, f"canModifySchema or {MANAGE_APPLICATIONS} is required"),
        ("roles", "delete", {"name": "x"}, f"canModifySchema or {MANAGE_APPLICATIONS} is required"),
        ("meta/schema", "get", {}, "canReadSchema is required"),
        ("meta/schema", "save", {}, "canModifySchema is required"),
        ("meta/data", "save", {"user_id": "$self", "roles": []}, "canWrite of roles is required"),
        (
            "meta/data",
            "save",
            {"user_id": "$root", "public_data": {}, "login": {}, "secret_data": {}},
            "canWrite of public, secret is required",
        ),
        ("meta/data", "save", {"user_id": "$self"}, "canWrite of roles, private, public or secret is required"),
        ("audit", None, {}, "project.can_manage_project is required"),
    ],
)
def test_refusal_at_an_application_names_the_missing_right(
    studio: Studio, ann: ApiUser, targets: Targets, path: str, action: str | None, data: dict[str, Any], right: str
) -> None:
    named = {"$self": ann.user_id, "$root": studio.root.user_id}
    data = {name: named.get(value, value) if isinstance(value, str) else value for name, value in data.items()}
    for application in (targets.application, targets.homeless, targets.removed, NO_APPLICATION):
        body: dict[str, Any] = {"data": data} | ({"action": action} if action else {})
        if path in ("application", "audit"):
            body["data"] = data | {"application_id": application}
        else:
            body["application_id"] = application
        assert refusal(ann, path, **body) == right


@pytest.mark.parametrize(
    ("path", "action", "data", "right"),
    [
        ("project", "get", {}, "project.can_view_project is required"),
        ("project", "save", {"description": "x"}, "project.can_manage_project is required"),
        ("project", "delete", {}, "project.can_remove_project is required"),
        ("project/membership", "get", {}, "project.can_view_project is required"),
        ("project/membership", "save", {"users": []}, "project.can_manage_project is required"),
        ("group", "save", {"title": "x"}, "project.can_manage_groups is required"),
        ("audit", None, {}, "project.can_manage_project is required"),
    ],
)
def test_refusal_at_a_project_names_the_missing_right(
    ann: ApiUser, targets: Targets, path: str, action: str | None, data: dict[str, Any], right: str
) -> None:
    name = "project_id" if path in ("group", "audit") else "id"
    for project in (targets.project, targets.removed_project, "no_such_project"):
        body: dict[str, Any] = {"data": data | {name: project}} | ({"action": action} if action else {})
        assert refusal(ann, path, **body) == right


@pytest.mark.parametrize(
    ("path", "action", "data", "right"),
    [
        ("group", "save", {"title": "x"}, "project.can_manage_groups is required"),
        ("group", "delete", {}, "project.can_manage_groups is required"),
        ("group/tags", None, {"tags": []}, "project.can_manage_groups is required"),
        ("group/access", None, {"users": []}, "group.can_manage_group is required"),
    ],
)
def test_refusal_at_a_group_names_the_missing_right(
    ann: ApiUser, targets: Targets, path: str, action: str | None, data: dict[str, Any], right: str
) -> None:
    for group in (targets.group, NO_GROUP):
        body: dict[str, Any] = {"data": data, "group_id": group} | ({"action": action} if action else {})
        assert refusal(ann, path, **body) == right


def test_refusal_of_creation_names_the_missing_right(ann: ApiUser, targets: Targets) -> None:
    assert refusal(ann, "publish", project="Mine") == "can_create_projects is required"
    assert refusal(ann, "application", action="save", data={"name": "x"}) == "can_create_app is required"
    for project in (targets.project, "no_such_project"):
        data = {"name": "x", "project_id": project}
        assert refusal(ann, "application", action="save", data=data) == f"{MANAGE_APPLICATIONS} is required"


def test_refusal_to_read_names_the_missing_right(studio: Studio, ann: ApiUser) -> None:
    none = {word: {"canRead": {"value": "none"}} for word in ("roles", "private", "public", "secret")}
    closed = studio.application(secret_data={"meta": none})
    body: dict[str, Any] = {"action": "get", "data": {"user_id": studio.root.user_id}}
    text = "canRead of roles, private, public or secret is required"
    for application in (closed, NO_APPLICATION):
        assert refusal(ann, "meta/data", application_id=application, **body) == text
    open_to_all = studio.application()
    roles = {"action": "get", "data": {"user_id": studio.root.user_id, "type": "roles"}}
    assert refusal(ann, "meta/data", application_id=open_to_all, **roles) == "canRead of roles is required"
    explain = {"action": "get", "data": {"user_id": studio.root.user_id}, "options": {"explain": True}}
    assert refusal(ann, "meta/data", application_id=open_to_all, **explain) == "canRead of roles is required"


def test_refusal_to_touch_the_role_root_names_it(studio: Studio) -> None:
    ann = studio.user()
    studio.give_secret(ann, 1, "canModifySchema", roles={"canWrite": "all"})
    assert refusal(ann, "roles", action="save", application_id=1, data={"name": "root"}) == "the role root is required"
    data = {"user_id": ann.user_id, "roles": ["root"]}
    assert refusal(ann, "meta/data", action="save", application_id=1, data=data) == "the role root is required"
