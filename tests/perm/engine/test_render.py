"""Renderings of permissions (§4.5), exact to the character."""

from typing import Any

import pytest

from sso.perm.engine.explanation.explain import explain_rule
from sso.perm.engine.render import Options, as_tree, render
from sso.perm.engine.reserved_names import LIST_TYPES
from tests.perm.evaluation import NOW, Evaluation, evaluate, role_giving, rule

GENERIC = role_giving("dev", "project.can_view_project", rule_params="z")


def member(**fields: Any) -> Evaluation:
    projects = [
        {
            "id": "red_dawn",
            "title": "Red Dawn",
            "aliases": ["rd"],
            "member": {"project": ["dev"]},
            "applications": [
                {"id": 12, "name": "B"},
                {"id": 11, "name": "A"},
                {"id": 13, "name": "C", "removed": True},
            ],
        },
        {
            "id": "blue",
            "title": "Blue",
            "member": {"applications": {"21": ["dev"]}},
            "applications": [{"id": 21, "name": "X"}, {"id": 22}],
        },
    ]
    roles = [GENERIC, role_giving("default", "can_create_app")]
    return evaluate(application_id=1, roles=roles, projects=projects, **fields)


def test_list_entry_without_parameters_has_no_bar() -> None:
    result = evaluate(
        own={"private_data": {"a": {"value": True, "params": " , "}, "b": {"value": True, "params": " x ,y"}}}
    )
    assert result.full() == ["private_data.a", "private_data.b|x,y"]
    assert result.full(with_exp=True) == ["private_data.a:0", "private_data.b|x,y:0"]


def test_lists_sort_as_whole_strings() -> None:
    own = {
        "private_data": {"b": {"value": 1}, "B": {"value": 1}, "a-b": {"value": 1}, "a": {"value": 1, "params": "p"}}
    }
    assert evaluate(own=own).short() == ["B", "a-b", "a|p", "b"]


def test_same_path_in_public_and_private_data_is_one_short_entry() -> None:
    result = evaluate(own={"private_data": rule("a", params="x,y"), "public_data": rule("a", params="y,z")})
    assert result.short() == ["a|x,y,z"]
    assert result.full() == ["private_data.a|x,y", "public_data.a|y,z"]


@pytest.mark.parametrize("declared", [{}, {"schema": {"public_data": rule("a", False)}}])
def test_short_entry_of_public_data_has_no_section(declared: dict[str, Any]) -> None:
    assert evaluate(own={"public_data": rule("a", params="y")}, **declared).short() == ["a|y"]


@pytest.mark.parametrize("place", ["schema", "own"])
@pytest.mark.parametrize("level", ["self", "all", "none"])
def test_short_entry_of_public_data_that_the_user_may_write_keeps_its_section_unless_declared_public(
    level: str, place: str
) -> None:
    secret = {"secret_data": {"meta": {"public": {"canWrite": {"value": level}}}}}
    own = {"public_data": rule("a", params="y"), "private_data": rule("b") | rule("a", params="x")}
    expected = ["a|x,y", "b"] if level == "none" else ["a|x", "b", "public_data.a|y"]
    parts: dict[str, Any] = {"own": own, "schema": {}}
    parts[place] = parts[place] | secret
    assert evaluate(**parts).short() == expected
    of_a_role = [{"name": "not_assigned", "meta": {"public_data": rule("a", False)}}]
    assert evaluate(**parts, roles=of_a_role).short() == ["a|x,y", "b"]
    parts["schema"] = parts["schema"] | {"public_data": rule("a", False)}
    assert evaluate(**parts).short() == ["a|x,y", "b"]


@pytest.mark.parametrize(
    "declared",
    [
        {"schema": {"private_data": rule("a", False)}},
        {"schema": {"private_data": rule("a", False), "public_data": rule("a", False)}},
        {"roles": [role_giving("not_assigned", "a")], "schema": {"public_data": rule("a", False)}},
        {"roles": [role_giving("not_assigned", "a")]},
    ],
)
def test_path_declared_private_never_comes_from_public_data(declared: dict[str, Any]) -> None:
    result = evaluate(own={"public_data": rule("a", params="forged")}, **declared)
    assert result.short() == []
    assert result.full() == ["public_data.a|forged"]
    explanation = explain_rule(result.application, result.facts, result.effective, "a")
    assert explanation["held"] is False
    assert explanation["reasons"][0]["reason"] == "public_only"
    assert explain_rule(result.application, result.facts, result.effective, "public_data.a")["held"] is True


def test_public_data_does_not_change_a_held_private_rule() -> None:
    result = evaluate(
        schema={"public_data": rule("a", params="98")},
        roles=[role_giving("r", "a", params="2")],
        own={"roles": [{"name": "r", "expired": NOW + 9}], "public_data": rule("a", params="99")},
    )
    assert result.short(with_exp=True) == ["a|2:9"]


def test_short_list_of_public_data_does_not_reveal_private_rules() -> None:
    public = frozenset(["public_data"])
    held, missing = (
        evaluate(schema={"private_data": rule("a", value), "public_data": rule("a") | rule("b")})
        for value in (True, False)
    )
    assert held.short(sections=public) == missing.short(sections=public) == ["b"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["can_create_app", "red_dawn/project.can_view_project|z"]),
        ({"project_id": "red_dawn"}, ["can_create_app", "red_dawn/project.can_view_project|z"]),
        ({"project_id": "rd"}, ["can_create_app", "red_dawn/project.can_view_project|z"]),
        ({"project_id": "blue"}, ["can_create_app"]),
        ({"project_id": "Red Dawn"}, ["can_create_app"]),
        ({"project_id": "nope"}, ["can_create_app"]),
        ({"hide_project_access": True}, ["can_create_app"]),
        ({"project_id": "rd", "hide_project_access": True}, ["can_create_app"]),
        ({"sections": frozenset(["public_data"])}, []),
        ({"sections": frozenset(["roles"])}, []),
    ],
)
def test_options_select_rules(options: dict[str, Any], expected: list[str]) -> None:
    assert member().short(**options) == expected


def test_options_select_roles() -> None:
    assert member().roles() == ["blue.applications.21/dev", "red_dawn/dev"]
    assert member().roles(project_id="rd") == ["red_dawn/dev"]
    assert member().roles(hide_project_access=True) == []
    assert member().effective_roles(project_id="blue") == ["blue.applications.21/dev", "default"]


def rendered(result: Evaluation, **options: Any) -> Any:
    return render("list_short", result.application, result.facts, result.effective, Options(**options))


def test_rendering_is_an_array_without_options() -> None:
    assert rendered(member()) == ["can_create_app", "red_dawn/project.can_view_project|z"]


def test_with_roles_adds_effective_roles() -> None:
    assert rendered(member(), with_roles=True, hide_project_access=True) == {
        "rules": ["can_create_app"],
        "roles": ["default"],
    }


def test_with_apps_data_adds_projects_and_applications() -> None:
    assert rendered(member(), with_apps_data=True) == {
        "rules": ["can_create_app", "red_dawn/project.can_view_project|z"],
        "projects": {"blue": {"name": "Blue"}, "red_dawn": {"name": "Red Dawn", "aliases": ["rd"]}},
        "apps": {"blue": [{"id": 21, "name": "X"}], "red_dawn": [{"id": 11, "name": "A"}, {"id": 12, "name": "B"}]},
    }


def test_with_roles_and_with_apps_data_combine() -> None:
    data = rendered(member(), with_roles=True, with_apps_data=True, project_id="rd")
    assert set(data) == {"rules", "roles", "projects", "apps"}
    assert data["roles"] == ["default", "red_dawn/dev"]
    assert set(data["projects"]) == set(data["apps"]) == {"red_dawn"}


def test_type_roles_lists_assigned_roles_whose_condition_does_not_hold() -> None:
    roles = [
        role_giving("a"),
        role_giving("b", condition={"tag": "x"}),
        role_giving("c", condition={"everyone": True}),
        role_giving("default"),
    ]
    result = evaluate(roles=roles, own={"roles": ["b", {"name": "a", "expired": NOW - 1}]})
    assert result.roles() == ["b"]
    assert result.effective_roles() == ["c", "default"]


SCHEMA: dict[str, Any] = {
    "public_data": {"hello": {"value": True}},
    "private_data": {"chat": {"mute": {"value": False, "protected": True, "description": "Mute"}, "x": {"value": 1}}},
    "secret_data": {"application": {"canRead": {"value": False}}},
    "login": {"can": {"value": True}, "cannot": {"value": False}},
}


def test_tree_shows_own_data_over_the_schema_and_assigned_roles() -> None:
    own = {
        "roles": ["a", {"name": "b", "expired": NOW - 5}, {"name": "c", "ttl": 5, "expired": 7}],
        "private_data": {"chat": {"mute": {"value": True, "expired": NOW + 5, "params": "p"}}, "new": {"value": 1}},
        "secret_data": {"application": {"canRead": {"value": True}}},
        "login": {"cannot": {"value": True}},
    }
    tree = evaluate(schema=SCHEMA, roles=[role_giving("default", "z")], own=own).tree()
    assert tree == {
        "roles": ["a", {"name": "b", "expired": NOW - 5}, {"name": "c", "expired": 7, "ttl": 5}],
        "public_data": {"hello": {"value": True}},
        "private_data": {
            "chat": {
                "mute": {"value": True, "protected": True, "description": "Mute", "expired": NOW + 5, "params": "p"},
                "x": {"value": 1},
            },
            "new": {"value": 1},
        },
        "secret_data": {"application": {"canRead": {"value": True}}},
        "login": {"can": {"value": True}, "cannot": {"value": True}},
    }


def test_tree_shows_ended_entries_and_lists_do_not() -> None:
    own = {
        "private_data": {"chat": {"mute": {"value": True, "expired": NOW}}, "gone": {"a": {"value": 1, "expired": 1}}}
    }
    result = evaluate(schema=SCHEMA, own=own)
    tree = result.tree()["private_data"]
    assert tree["chat"]["mute"] == SCHEMA["private_data"]["chat"]["mute"] | {"value": True, "expired": NOW}
    assert tree["gone"] == {"a": {"value": 1, "expired": 1}}
    assert result.full() == evaluate(schema=SCHEMA).full()
    assert result.short() == evaluate(schema=SCHEMA).short()


def test_tree_has_only_readable_sections() -> None:
    result = evaluate(schema=SCHEMA)
    assert set(as_tree(result.application.schema, result.facts.own, frozenset(["public_data", "roles"]))) == {
        "public_data",
        "roles",
    }


def test_changing_a_tree_does_not_change_the_schema() -> None:
    result = evaluate(schema=SCHEMA)
    result.tree()["private_data"]["chat"]["mute"]["value"] = True
    assert result.tree()["private_data"] == SCHEMA["private_data"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("list", ["private_data.can_create_app"]),
        ("list_short", ["can_create_app"]),
        ("roles", []),
        ("tree", {"login": {}, "private_data": {}, "public_data": {}, "roles": [], "secret_data": {}}),
    ],
)
def test_render_returns_each_type(kind: str, expected: Any) -> None:
    result = member()
    chosen = Options(hide_project_access=True)
    assert render(kind, result.application, result.facts, result.effective, chosen) == expected
    with_roles = Options(hide_project_access=True, with_roles=True)
    wrapped = render(kind, result.application, result.facts, result.effective, with_roles)
    assert wrapped == {"rules": expected, "roles": ["default"]}


def test_list_is_the_default_type() -> None:
    assert LIST_TYPES[0] == "list"
