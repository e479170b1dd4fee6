"""POST /api/permissions/roles (§2.7, §4.9), and the rules of protected roles (§3)."""

from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiResponse, Studio

FULL: dict[str, Any] = {
    "name": "guard",
    "meta": {"private_data": {"patrol": {"value": True, "params": "a"}}, "public_data": {"badge": {"value": 7}}},
    "description": "Walks around",
    "protected": True,
    "default": False,
    "condition": {"or": [{"tag": "beta"}, {"and": [{"domain": "example.com"}, {"ip": "10.0.0.0/8"}]}]},
    "user_limit": 5,
    "params": "north,south",
}
EMPTY: dict[str, Any] = {
    "name": "plain",
    "meta": {},
    "description": "",
    "protected": False,
    "default": False,
    "condition": {},
    "user_limit": 0,
    "params": "",
}


def save(studio: Studio, app: int, **data: Any) -> ApiResponse:
    return studio.root.call("roles", action="save", application_id=app, data=data)


def get(studio: Studio, app: int, **data: Any) -> ApiResponse:
    return studio.root.call("roles", action="get", application_id=app, data=data)


@pytest.fixture
def app(studio: Studio) -> int:
    return studio.application()


def test_role_save_and_get_return_the_record(studio: Studio, app: int) -> None:
    assert save(studio, app, **FULL).data == FULL
    assert save(studio, app, name="plain").body == {"status": "OK", "data": EMPTY}
    assert get(studio, app, name="guard").body == {"status": "OK", "data": FULL}
    assert get(studio, app).body == {"status": "OK", "data": [FULL, EMPTY]}
    assert save(studio, app, **FULL, application_id=app).data == FULL


def test_role_save_keeps_fields_that_it_leaves_out(studio: Studio, app: int) -> None:
    save(studio, app, **FULL)
    assert save(studio, app, name="guard", description="new").data == FULL | {"description": "new"}


def test_role_delete_removes_the_role_and_its_assignments(studio: Studio, app: int) -> None:
    ann = studio.user()
    save(studio, app, name="guard", meta=FULL["meta"])
    studio.save_data(ann, app, roles=["guard"])
    delete = {"action": "delete", "application_id": app, "data": {"name": "guard"}}
    assert studio.root.call("roles", **delete).body == {"status": "OK"}
    assert get(studio, app, name="guard").body == {"status": "ERROR", "error": "role not found"}
    assert studio.root.call("roles", **delete).status == 404
    save(studio, app, name="guard", meta=FULL["meta"])
    assert studio.rules_of(ann, app, "roles") == []


def test_unknown_fields_are_named_in_warnings(studio: Studio, app: int) -> None:
    response = save(studio, app, name="x", colour="red", meta={"secret_data": {}, "private_data": {}})
    assert sorted(response.body["warnings"]) == [
        "colour: unknown field, ignored",
        "meta.secret_data: unknown field, ignored",
    ]
    assert get(studio, app, nmae="x").body["warnings"] == ["nmae: unknown field, ignored"]


def test_role_applies_while_its_condition_holds(studio: Studio, app: int) -> None:
    """Roles with each condition: one that users have by the condition alone, and one that the user was given."""
    ann = studio.user(tags=["beta"], purchases=["full_game"])
    conditions: tuple[tuple[dict[str, Any], bool], ...] = (
        ({"domain": "EXAMPLE.com"}, True),
        ({"domain": "example.org"}, False),
        ({"domain": "xample.com"}, False),
        ({"uid": [ann.user_id]}, True),
        ({"uid": []}, False),
        ({"tag": "beta"}, True),
        ({"tag": "bet"}, False),
        ({"purchase": "full_game"}, True),
        ({"ip": "127.0.0.0/8"}, True),
        ({"ip": "10.0.0.0/8"}, False),
        ({"everyone": True}, True),
        ({"everyone": False}, False),
        ({"everyone": True, "tag": "nope"}, False),
        ({"everyone": False, "tag": "beta"}, True),
        ({"and": []}, False),
        ({"or": []}, False),
        ({"or": [{}]}, False),
        ({"and": [{"tag": "beta"}, {"or": [{"tag": "nope"}, {"purchase": "full_game"}]}]}, True),
    )
    roles = [
        {"name": name, "condition": condition, "meta": {"private_data": {name: {"value": True}}}}
        for number, (condition, _) in enumerate(conditions)
        for name in (f"given_{number}", f"maybe_{number}")
    ]
    given = [f"given_{number}" for number in range(len(conditions))]
    record = {"user_id": ann.user_id, "application_id": app, "data": {"roles": given}}
    studio.server.apply({"roles": {str(app): roles}, "permissions": [record]})
    held = [f"{kind}_{number}" for number, (_, holds) in enumerate(conditions) if holds for kind in ("given", "maybe")]
    assert sorted(studio.rules_of(ann, app)) == sorted(held)
    assert sorted(studio.rules_of(ann, app, "roles")) == sorted(given)


@pytest.mark.parametrize("condition", [{"ip": "10.0.0.0/33"}, {"and": [{"doman": "x"}]}, "x"])
def test_invalid_condition_is_rejected(studio: Studio, unchanged_app: int, condition: Any) -> None:
    assert save(studio, unchanged_app, name="x", condition=condition).status == 400


def nested(levels: int) -> dict[str, Any]:
    condition: dict[str, Any] = {"tag": "x"}
    for _ in range(levels - 1):
        condition = {"and": [condition]}
    return condition


def test_condition_has_at_most_256_nodes_and_64_levels(studio: Studio, app: int) -> None:
    many = {"or": [{"tag": "x"}] * 255}
    assert save(studio, app, name="x", condition=many).status == 200
    assert save(studio, app, name="x", condition={"or": [{"tag": "x"}] * 256}).status == 400
    assert save(studio, app, name="x", condition=nested(25)).status == 200
    assert save(studio, app, name="x", condition=nested(70)).status == 400


def test_default_roles_apply_to_all_users(studio: Studio, app: int) -> None:
    studio.role(app, "default", "sit")
    studio.role(app, "other", "stand", default=True, condition={"tag": "missing"})
    assert studio.rules_of(studio.user(), app) == ["sit", "stand"]


def test_parameters_are_appended_and_merged_in_the_order_of_role_names(studio: Studio, app: int) -> None:
    ann = studio.user()
    rule = {"private_data": {"walk": {"value": True, "params": "own"}}}
    save(studio, app, name="b", meta=rule, params="x, y")
    save(studio, app, name="a", meta=rule, params="z,x")
    studio.save_data(ann, app, roles=["b", "a"])
    assert studio.rules_of(ann, app) == ["walk|own,z,x,y"]


@pytest.mark.parametrize("field", [{"params": "a|b"}, {"user_limit": -1}, {"user_limit": "1"}])
def test_invalid_parameters_and_user_limits_are_rejected(
    studio: Studio, unchanged_app: int, field: dict[str, Any]
) -> None:
    assert save(studio, unchanged_app, name="x", **field).status == 400


@pytest.mark.parametrize("name", ["a.b", "projectAccess", None])
def test_invalid_role_name_is_rejected(studio: Studio, unchanged_app: int, name: object) -> None:
    assert save(studio, unchanged_app, name=name).status == 400
    assert get(studio, unchanged_app, name=name).status == 400
    assert studio.root.call("roles", action="delete", application_id=unchanged_app, data={"name": name}).status == 400


PROTECTED: dict[str, Any] = {
    "private_data": {"ban": {"value": False, "protected": True}, "sub": {"kick": {"value": False, "protected": True}}}
}


def meta(section: str = "private_data", **rules: Any) -> dict[str, Any]:
    return {section: rules or {"ban": {"value": True}}}


def test_protected_rule_in_a_public_role_is_rejected(studio: Studio) -> None:
    app = studio.application(**PROTECTED)
    roles: list[dict[str, Any]] = [
        {"name": name, **fields}
        for name in ("guard", "default")
        for fields in (
            {"meta": meta()},
            {"meta": meta(ban={"value": False})},
            {"meta": meta(sub={"kick": {"value": True}})},
            {"meta": meta("public_data")},
            {"meta": meta(), "default": True},
            {"meta": meta(), "params": "x"},
        )
    ]
    for role in roles:
        response = save(studio, app, **role)
        assert (response.status, response.body["status"]) == (400, "ERROR"), role
    assert get(studio, app).data == []
    for role in roles[:6]:
        assert save(studio, app, protected=True, **role).status == 200, role


def test_protected_role_with_protected_rules_cannot_become_public(studio: Studio) -> None:
    app = studio.application(**PROTECTED)
    save(studio, app, name="guard", protected=True, meta=meta())
    assert save(studio, app, name="guard", protected=False).status == 400
    assert get(studio, app, name="guard").data["protected"] is True
    assert save(studio, app, name="guard", protected=False, meta={}).status == 200  # the new content of the role counts


def test_rule_in_a_public_role_cannot_become_protected(studio: Studio) -> None:
    app = studio.application(private_data={"ban": {"value": False}})
    save(studio, app, name="guard", meta=meta())
    become = {"action": "save", "application_id": app}
    assert studio.root.call("meta/schema", **become, data=PROTECTED).status == 409
    both = PROTECTED | {"roles": {"guard": {"protected": True}}}
    assert studio.root.call("meta/schema", **become, data=both).status == 200


def test_role_that_becomes_protected_is_removed_from_project_settings(studio: Studio) -> None:
    project, ann = studio.project(), studio.user()
    app = studio.application(project)
    group = studio.group(project, ann.user_id)
    studio.role(app, "guard", "patrol")
    studio.role(app, "cook", "bake")
    actions = [
        {"group_id": group, "role": "guard", "action": "grant"},
        {"group_id": group, "role": "cook", "action": "grant"},
    ]
    settings = {"services": {str(app): {"groups": actions}}}
    assert studio.root.call("project", action="save", data={"id": project, "settings": settings}).status == 200
    assert studio.rules_of(ann, app) == ["bake", "patrol"]
    save(studio, app, name="guard", protected=True)
    assert studio.rules_of(ann, app) == ["bake"]
    kept = studio.root.call("project", action="get", data={"id": project}).data["settings"]
    assert kept == {"services": {str(app): {"groups": actions[1:]}}}
    save(studio, app, name="guard", protected=False)
    assert studio.rules_of(ann, app) == ["bake"]
    again = studio.root.call("project", action="save", data={"id": project, "settings": settings})
    assert again.status == 200


def test_generic_role_that_becomes_protected_is_removed_from_memberships(studio: Studio) -> None:
    project, ann = studio.project(), studio.user()
    rules = {"private_data": {"project": {"can_view_project": {"value": True}}}}
    save(studio, 1, name="temporary", meta=rules)
    studio.join(project, ann, project=["temporary"])
    assert ann.call("project", action="get", data={"id": project}).status == 200
    save(studio, 1, name="temporary", protected=True)
    assert ann.call("project", action="get", data={"id": project}).status == 403
    users = studio.root.call("project/membership", action="get", data={"id": project}).data["users"]
    assert ann.user_id not in [user["user_id"] for user in users]
    refused = {"id": project, "users": [{"user_id": ann.user_id, "roles": {"project": ["temporary"]}}]}
    assert studio.root.call("project/membership", action="save", data=refused).status == 400
    assert studio.root.call("roles", action="delete", application_id=1, data={"name": "temporary"}).status == 200


def test_deleted_role_is_removed_from_project_settings(studio: Studio) -> None:
    project, ann = studio.project(), studio.user()
    app = studio.application(project)
    group = studio.group(project, ann.user_id)
    studio.role(app, "guard", "patrol")
    actions = [{"group_id": group, "role": "guard", "action": "revoke"}]
    settings = {"services": {str(app): {"groups": actions}}}
    assert studio.root.call("project", action="save", data={"id": project, "settings": settings}).status == 200
    assert studio.root.call("roles", action="delete", application_id=app, data={"name": "guard"}).status == 200
    kept = studio.root.call("project", action="get", data={"id": project}).data
    assert kept["settings"] == {"services": {str(app): {"groups": []}}}
    assert studio.root.call("project", action="save", data=kept).data == kept


def test_role_root_cannot_be_deleted_or_become_public(studio: Studio) -> None:
    assert studio.root.call("roles", action="delete", application_id=1, data={"name": "root"}).status == 409
    assert save(studio, 1, name="root", protected=False).status == 409
    ann, project = studio.user(), studio.project()
    users = [{"user_id": ann.user_id, "roles": {"project": ["root"]}}]
    assert studio.root.call("project/membership", action="save", data={"id": project, "users": users}).status == 400
