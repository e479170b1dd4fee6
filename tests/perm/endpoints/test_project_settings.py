"""Settings of projects: allowed domains, grants and revokes (§2.4)."""

from typing import Any

from tests.kit.permission_calls import action, services
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio


def project(user: ApiUser, action: str, project_id: object, **data: Any) -> ApiResponse:
    return user.call("project", action=action, data={"id": project_id, **data})


def test_project_save_replaces_the_settings_that_it_contains(studio: Studio) -> None:
    project_id = studio.project()
    project(studio.root, "save", project_id, settings={"allowed_domains": ["example.com", "example.com"]})
    saved = project(studio.root, "save", project_id, settings={"services": {}}).data
    assert saved["settings"] == {"allowed_domains": ["example.com"], "services": {}}


def test_project_settings_name_only_resources_of_the_project(studio: Studio) -> None:
    project_id, foreign = studio.project(), studio.project()
    app, other, removed = studio.application(project_id), studio.application(foreign), studio.application(project_id)
    assert studio.root.call("application", action="delete", data={"application_id": removed}).status == 200
    group, stranger = studio.group(project_id), studio.group(foreign)
    studio.role(app, "guard", "patrol")
    studio.role(app, "chief", "rule", protected=True)
    for settings in (
        services(other, action(group, "guard")),
        services(removed),
        services(1),
        services(2**31 - 1),
        services(app, action(stranger, "guard")),
        services(app, action("0" * 24, "guard")),
        services(app, action(group, "missing")),
        services(app, action(group, "chief")),
        services(app, action(group, "guard", "give")),
        services(app, {"group_id": group, "role": "guard"}),
        services("x"),
        services("010"),
    ):
        response = project(studio.root, "save", project_id, settings=settings)
        assert (response.status, response.body["status"]) == (400, "ERROR"), settings
    assert project(studio.root, "get", project_id).data["settings"] == {}
    assert (
        project(studio.root, "save", project_id, settings=services(app, action(group, "chief", "revoke"))).status == 200
    )


def test_revoke_takes_precedence_over_every_source_of_a_role(studio: Studio) -> None:
    project_id, ann = studio.project(), studio.user()
    app, group = studio.application(project_id), studio.group(project_id, ann.user_id)
    for name in ("granted", "assigned"):
        studio.role(app, name, name)
    studio.role(app, "everyone", "basic", default=True)
    studio.save_data(ann, app, roles=["assigned"])
    project(studio.root, "save", project_id, settings=services(app, action(group, "granted")))
    assert studio.rules_of(ann, app) == ["assigned", "basic", "granted"]
    revokes = [action(group, name, "revoke") for name in ("granted", "assigned", "everyone")]
    project(studio.root, "save", project_id, settings=services(app, action(group, "granted"), *revokes))
    assert studio.rules_of(ann, app) == ["basic"]
    assert studio.rules_of(ann, app, "roles") == []


def test_allowed_domains_exclude_users_of_other_domains(studio: Studio) -> None:
    inside = studio.user(login="inside@Studio.example")
    project_id = studio.project(inside)
    outside = studio.user(login="outside@sub.studio.example")
    app = studio.application(project_id)
    studio.role(app, "guard", "patrol")
    group = studio.group(project_id, inside.user_id, outside.user_id)
    studio.join(project_id, outside, project=["viewer"])
    settings = {"allowed_domains": ["STUDIO.example"], **services(app, action(group, "guard"))}
    project(studio.root, "save", project_id, settings=settings)
    assert project(inside, "get", project_id).status == 200
    assert studio.rules_of(inside, app) == ["patrol"]
    assert project(outside, "get", project_id).status == 403
    assert studio.rules_of(outside, app) == []
