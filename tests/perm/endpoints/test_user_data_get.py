"""POST /api/permissions/meta/data, action get: every type and option (§2.9, §4.5).

More than 300 lines, because one operation has many types and options.
"""

import time
from typing import Any

import pytest

from tests.kit.permission_calls import get
from tests.perm.endpoints.conftest import ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey

SCHEMA: dict[str, Any] = {
    "public_data": {"skin": {"value": "red"}},
    "private_data": {"chat": {"mute": {"value": True, "description": "Silence"}, "ban": {"value": False}}},
}


@pytest.fixture(scope="module")
def app(studio: Studio) -> int:
    app = studio.application(**SCHEMA)
    studio.role(app, "guard", "patrol", params="north,south")
    return app


@pytest.fixture(scope="module")
def ann(studio: Studio, app: int) -> ApiUser:
    ann = studio.user()
    own = {"chat": {"ban": {"value": True, "params": "eu"}}}
    studio.save_data(ann, app, roles=["guard"], private_data=own)
    return ann


LIST = [
    "private_data.chat.ban|eu",
    "private_data.chat.mute",
    "private_data.patrol|north,south",
    "public_data.skin",
]


def test_type_list_is_the_default(ann: ApiUser, app: int) -> None:
    assert get(ann, app).body == {"status": "OK", "data": LIST, "user_id": ann.user_id, "expired": 0}
    assert get(ann, str(app), type="list").data == LIST


def test_list_short_has_no_sections(ann: ApiUser, app: int) -> None:
    assert get(ann, app, type="list_short").data == ["chat.ban|eu", "chat.mute", "patrol|north,south", "skin"]


def test_tree_is_the_stored_record_over_the_schema(ann: ApiUser, app: int) -> None:
    tree = get(ann, app, type="tree").data
    assert set(tree) == {"login", "private_data", "public_data", "roles", "secret_data"}
    assert tree["roles"] == ["guard"]
    assert tree["private_data"] == {
        "chat": {"mute": {"value": True, "description": "Silence"}, "ban": {"value": True, "params": "eu"}}
    }
    assert tree["secret_data"]["application"]["canRead"] == {"value": False}
    assert tree["login"]["can"]["value"] is True


def test_type_roles_lists_assigned_names(ann: ApiUser, app: int) -> None:
    assert get(ann, app, type="roles").data == ["guard"]


def test_with_exp_ends_every_entry_with_its_seconds(ann: ApiUser, app: int) -> None:
    assert get(ann, app, {"with_exp": True}).data == [f"{line}:0" for line in LIST]


def test_with_roles_and_with_apps_data_make_data_an_object(ann: ApiUser, app: int) -> None:
    assert get(ann, app, {"with_roles": True}).data == {"rules": LIST, "roles": ["guard"]}
    assert get(ann, app, {"with_apps_data": True}).data == {"rules": LIST, "projects": {}, "apps": {}}
    off = {"with_roles": False, "with_apps_data": False, "with_exp": False, "hide_project_access": False}
    assert get(ann, app, off).data == LIST


def test_ttl_counts_from_each_request_and_takes_precedence_over_expired(studio: Studio, app: int) -> None:
    bob = studio.user()
    soon = int(time.time()) + 1000
    studio.save_data(bob, app, roles=[{"name": "guard", "ttl": 60, "expired": soon}])
    began = time.time()
    response = get(bob, app, {"with_exp": True}, type="list_short")
    assert "patrol|north,south:60" in response.data
    assert began + 60 - 2 <= response.body["expired"] <= time.time() + 60 + 2
    assert get(bob, app, type="tree").data["roles"] == [{"name": "guard", "expired": soon, "ttl": 60}]


def test_expired_is_the_earliest_end_of_a_role_that_has_not_ended(studio: Studio) -> None:
    app, bob = studio.application(), studio.user()
    now = int(time.time())
    for name in ("a", "b", "c", "d"):
        studio.role(app, name, f"rule_{name}")
    ends = {"a": now + 500, "b": now + 300, "c": now - 5, "d": 0}
    studio.save_data(bob, app, roles=[{"name": name, "expired": end} for name, end in ends.items()])
    response = get(bob, app, type="list_short")
    assert response.data == ["rule_a", "rule_b", "rule_d"]
    assert response.body["expired"] == now + 300
    assert get(bob, app, type="roles").data == ["a", "b", "d"]


def test_expired_own_entry_is_shown_by_tree_and_left_out_of_lists(studio: Studio, app: int) -> None:
    bob = studio.user()
    ended = {"value": False, "expired": int(time.time()) - 5}
    studio.save_data(bob, app, private_data={"chat": {"mute": ended}})
    assert "chat.mute" in get(bob, app, type="list_short").data
    assert get(bob, app, type="tree").data["private_data"]["chat"]["mute"].items() >= ended.items()


def test_project_access_is_reported_with_the_central_application(studio: Studio) -> None:
    bob, project = studio.user(), studio.project()
    app, group = studio.application(project), studio.group(project)
    assert studio.root.call("application/tags", application_id=app, data={"tags": ["x"]}).status == 200
    roles = {"applications": {str(app): ["app_admin"]}, "services": {str(app): ["srv_admin"]}}
    studio.join(project, bob, project=["viewer"], groups={group: ["group_admin"]}, **roles)
    short = get(bob, 1, type="list_short").data
    assert short == [
        f"{project}/applications/{app}/app.can_ban_users",
        f"{project}/applications/{app}/app.can_manage_app_api_keys",
        f"{project}/applications/{app}/app.can_view_app",
        f"{project}/groups/{group}/group.can_manage_group",
        f"{project}/project.can_view_project",
        f"{project}/services/{app}/srv.can_manage_service",
        f"{project}/services/{app}/srv.can_view_service",
    ]
    long = get(bob, 1).data
    start = f"private_data.projectAccess.{project}"
    assert f"{start}.private_data.project.can_view_project" in long
    assert f"{start}.applications.{app}.private_data.app.can_manage_app_api_keys" in long
    assert f"{start}.groups.{group}.private_data.group.can_manage_group" in long
    assert get(bob, 1, type="roles").data == sorted(
        [
            f"{project}/viewer",
            f"{project}.applications.{app}/app_admin",
            f"{project}.services.{app}/srv_admin",
            f"{project}.groups.{group}/group_admin",
        ]
    )
    assert "projectAccess" not in str(get(bob, 1, type="tree").data)
    assert get(bob, app).data == []


def test_project_id_and_hide_project_access_select_projects(studio: Studio) -> None:
    bob, red, blue = studio.user(), studio.project(), studio.project()
    app = studio.application(red)
    for project in (red, blue):
        studio.join(project, bob, project=["viewer"])
    studio.save_data(bob, 1, private_data={"can_create_app": {"value": True}})
    alias = f"{red}-alias"
    assert studio.root.call("project", action="save", data={"id": red, "aliases": [alias]}).status == 200
    view = f"{red}/project.can_view_project"
    for name in (red, alias):
        rules = get(bob, 1, {"project_id": name}, type="list_short").data
        assert view in rules
        assert "can_create_app" in rules
        assert not any(line.startswith(f"{blue}/") for line in rules)
    assert get(bob, 1, {"project_id": "no_such"}, type="list_short").data == ["can_create_app"]
    assert get(bob, 1, {"hide_project_access": True}, type="list_short").data == ["can_create_app"]
    data = get(bob, 1, {"with_apps_data": True, "project_id": red}).data
    title = studio.root.call("project", action="get", data={"id": red}).data["title"]
    name = studio.root.call("application", action="get", data={"application_id": app}).data["name"]
    assert data["projects"] == {red: {"name": title, "aliases": [alias]}}
    assert data["apps"] == {red: [{"id": app, "name": name}]}


def test_explain_names_the_sources_of_a_rule(ann: ApiUser, app: int) -> None:
    chains = get(ann, app, {"explain": True}).body["explain"]
    assert set(chains) == {line.partition("|")[0] for line in LIST}
    (source,) = chains["private_data.patrol"]["sources"]
    assert (source["role"], source["by"]) == ("guard", [{"kind": "assignment", "expired": 0}])
    missing = get(ann, app, {"explain": "private_data.fly"}).body["explain"]
    assert (missing["held"], missing["reasons"][0]["reason"]) == (False, "unknown")


def test_explain_shows_conditions_only_to_callers_who_may_read_roles(studio: Studio) -> None:
    manager, bob = studio.user(), studio.user()
    project = studio.project(manager)
    app = studio.application(project, private_data={"vault": {"value": False}, "gate": {"value": False}})
    studio.role(app, "held_by_network", "gate", condition={"ip": "127.0.0.0/8"})
    studio.role(app, "hidden_network", "vault", condition={"ip": "10.99.0.0/16"})
    studio.role(app, "hidden_unassigned", "vault")
    group = studio.group(project, conditions=[{"title": "staff", "condition": {"domain": "hidden.example"}}])
    action = {"group_id": group, "role": "hidden_unassigned", "action": "grant"}
    settings = {"services": {str(app): {"groups": [action]}}}
    assert studio.root.call("project", action="save", data={"id": project, "settings": settings}).status == 200

    def everything(user: ApiUser) -> str:
        asked = ({"explain": True}, {"explain": "vault"}, {"explain": "gate"}, {"explain": "private_data.vault"})
        responses = [get(user, app, options, user_id=bob.user_id) for options in asked]
        assert [response.status for response in responses] == [200] * 4
        return str([response.body["explain"] for response in responses])

    hidden = ("10.99.", "127.0.0.0", "hidden_network", "hidden_unassigned", "compared", "staff")
    plain = everything(bob)
    assert not [word for word in hidden if word in plain]
    assert "held_by_network" in plain  # a role that the user has
    reasons = get(bob, app, {"explain": "vault"}).body["explain"]["reasons"]
    assert {reason["reason"] for reason in reasons} == {"condition", "not_in_group", "schema_value"}
    assert {"10.99.", "hidden_unassigned"} <= {word for word in hidden if word in everything(studio.root)}
    studio.give_secret(bob, app, "canSeeRoleList")
    assert "10.99." in everything(bob)
    studio.give_secret(manager, app, roles={"canRead": "all"}, private={"canRead": "all"})
    assert "10.99." in everything(manager)


def test_explain_of_project_rules_shows_conditions_only_to_administrators_of_that_project(studio: Studio) -> None:
    role = f"conditional{studio.application()}"
    studio.role(1, role, condition={"uid": ["1"], "domain": "hidden.example"})
    meta = {"private_data": {"project": {"can_view_project": {"value": True}, "can_fly": {"value": True}}}}
    assert studio.root.call("roles", action="save", application_id=1, data={"name": role, "meta": meta}).status == 200
    bob, project = studio.user(), studio.project()
    studio.join(project, bob, project=[role])
    asked = {"explain": f"{project}/project.can_view_project"}
    assert "hidden.example" not in str(get(bob, 1, asked).body)
    assert "hidden.example" in str(get(studio.root, 1, asked, user_id=bob.user_id).body)
    studio.join(project, bob, project=[role, "group_admin"])
    assert "hidden.example" not in str(get(bob, 1, asked).body)
    studio.join(project, bob, project=[role, "manager"])
    studio.root.call("project", action="save", data={"id": project, "aliases": [f"{project}_x"]})
    for name in (project, f"{project}_x", f"{project}-X"):  # the same name in another form
        assert "hidden.example" in str(get(bob, 1, {"explain": f"{name}/project.can_fly"}).body), name
    assert studio.root.call("roles", action="delete", application_id=1, data={"name": role}).status == 200


def test_expired_is_0_for_callers_who_may_not_read_roles(studio: Studio, app: int) -> None:
    ann, bob, carol = studio.user(), studio.user(), studio.user()
    end = int(time.time()) + 300
    studio.save_data(ann, app, roles=[{"name": "guard", "expired": end}])
    assert get(bob, app, user_id=ann.user_id).body["expired"] == 0
    assert get(ann, app).body["expired"] == end
    studio.give_secret(carol, app, roles={"canRead": "all"})
    assert get(carol, app, user_id=ann.user_id).body["expired"] == end
    studio.give_secret(bob, app, public={"canWrite": "all"})
    data = {"user_id": ann.user_id, "public_data": {"skin": {"value": "blue"}}}
    saved = bob.call("meta/data", action="save", application_id=app, data=data)
    assert (saved.status, saved.body["expired"]) == (200, 0)


@pytest.mark.parametrize("value", [None, 1, "true"])
@pytest.mark.parametrize("flag", ["hide_project_access", "with_exp", "with_roles", "with_apps_data"])
def test_option_must_be_true_or_false(ann: ApiUser, app: int, flag: str, value: object) -> None:
    assert get(ann, app, {flag: value}).status == 400


def test_unknown_fields_and_options_are_named_in_warnings(ann: ApiUser, app: int) -> None:
    response = get(ann, app, {"with_ex": True}, typ="tree")
    assert response.body["warnings"] == ["typ: unknown field, ignored", "options.with_ex: unknown field, ignored"]


def test_data_is_required_and_user_id_may_be_absent(ann: ApiUser, app: int) -> None:
    response = ann.call("meta/data", action="get", application_id=app)
    assert (response.status, response.body["error"]) == (400, "data: is required")


@pytest.mark.parametrize("kind", ["", "Tree", None, ["list"]])
def test_unknown_type_is_rejected(ann: ApiUser, app: int, kind: object) -> None:
    assert get(ann, app, type=kind).status == 400


@pytest.mark.parametrize("user_id", [None, 1001, ["1001"]])
def test_user_id_must_be_a_string(ann: ApiUser, app: int, user_id: object) -> None:
    assert get(ann, app, user_id=user_id).status == 400


@pytest.mark.parametrize("user_id", ["", "0", "999999999", "9" * 30, "١٢", " 1000", "1000 ", "01000", "ann", "1000;"])
def test_unknown_user_is_not_found(ann: ApiUser, app: int, user_id: str) -> None:
    response = get(ann, app, user_id=user_id)
    assert (response.status, response.body) == (404, {"status": "ERROR", "error": "user not found"})


def test_own_record_is_readable_without_rights(studio: Studio) -> None:
    closed = {word: {"canRead": {"value": "none"}} for word in ("roles", "private", "public", "secret")}
    app, bob = studio.application(**SCHEMA, secret_data={"meta": closed}), studio.user()
    for user_id in ({}, {"user_id": bob.user_id}):
        assert len(get(bob, app, type="list", **user_id).data) == 2
        assert "secret_data" in get(bob, app, type="tree", **user_id).data
        assert get(bob, app, type="roles", **user_id).data == []


LEVELS = ("none", "self", "all")


@pytest.mark.parametrize(
    ("word", "section"),
    [("public", "public_data"), ("private", "private_data"), ("roles", "roles"), ("secret", "secret_data")],
)
@pytest.mark.parametrize("level", LEVELS)
def test_tree_of_another_user_has_only_sections_with_can_read_all(
    studio: Studio, ann: ApiUser, word: str, section: str, level: str
) -> None:
    levels = {other: {"canRead": {"value": "none"}} for other in ("roles", "private", "public", "secret")}
    levels[word] = {"canRead": {"value": level}}
    app = studio.application(**SCHEMA, secret_data={"meta": levels})
    response = get(ann, app, type="tree", user_id=studio.root.user_id)
    if level == "all":
        assert set(response.data) == {section} | ({"login"} if word == "secret" else set())
    else:
        assert (response.status, response.body["error"]) == (
            403,
            "canRead of roles, private, public or secret is required",
        )


def test_list_of_another_user_leaves_out_unreadable_sections(studio: Studio, ann: ApiUser, app: int) -> None:
    bob = studio.user()
    assert get(bob, app, user_id=ann.user_id).data == ["public_data.skin"]
    assert get(bob, app, {"with_roles": True}, user_id=ann.user_id).data == {"rules": ["public_data.skin"]}
    assert get(bob, app, user_id=ann.user_id, type="roles").status == 403
    assert get(bob, app, {"explain": "chat.mute"}, user_id=ann.user_id).status == 403
    assert get(bob, app, {"explain": True}, user_id=ann.user_id).status == 403


def test_own_secret_data_of_the_caller_overrides_the_schema(studio: Studio, ann: ApiUser, app: int) -> None:
    bob = studio.user()
    studio.give_secret(bob, app, private={"canRead": "all"}, public={"canRead": "none"})
    assert get(bob, app, user_id=ann.user_id).data == LIST[:3]


def test_service_of_the_project_reads_all_sections(studio: Studio) -> None:
    project = studio.project()
    app, sister, bob = studio.application(project), studio.application(project), studio.user()
    token = ServiceKey().trusted_by(studio, sister).sign(studio.server, sister)
    body = {"action": "get", "application_id": app, "data": {"type": "tree", "user_id": studio.root.user_id}}
    assert len(bob.call("meta/data", {"Service-Jwt": token}, **body).data) == 5
    assert len(bob.call("meta/data", **body).data) == 1


def test_secret_data_and_login_are_never_listed(studio: Studio, app: int) -> None:
    rules = str(get(studio.root, app).data) + str(get(studio.root, app, type="list_short").data)
    assert "secret" not in rules
    assert "login" not in rules


def test_permissions_of_an_application_in_a_removed_project_are_forbidden(studio: Studio) -> None:
    project, bob = studio.project(), studio.user()
    app = studio.application(project)
    assert get(bob, app).status == 200
    assert studio.root.call("project", action="delete", data={"id": project}).status == 200
    assert get(bob, app).status == 403
    assert get(studio.root, app).status == 403


def test_same_path_in_public_and_private_data_is_one_entry_of_list_short(studio: Studio) -> None:
    app, user = studio.application(), studio.user()
    public, private = ({"x": {"value": True, "params": param}, "y": {"value": True}} for param in "ab")
    studio.save_data(user, app, public_data=public, private_data=private)
    assert get(user, app, type="list_short").data == ["x|b,a", "y"]
