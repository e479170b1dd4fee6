"""Renderings (§4.5), to the character."""

from typing import Any

import pytest

from sso.perm.engine.explanation.explain import explain_rule
from sso.perm.engine.names import LIST_TYPES
from sso.perm.engine.render import Options, as_tree, render
from tests.perm.world import NOW, World, giving, rule, world

GENERIC = giving("dev", "project.can_view_project", rule_params="z")


def member(**fields: Any) -> World:
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
    roles = [GENERIC, giving("default", "can_create_app")]
    return world(application_id=1, roles=roles, projects=projects, **fields)


def test_list_entry_without_parameters_has_no_bar() -> None:
    made = world(own={"private_data": {"a": {"value": True, "params": " , "}, "b": {"value": True, "params": " x ,y"}}})
    assert made.full() == ["private_data.a", "private_data.b|x,y"]
    assert made.full(with_exp=True) == ["private_data.a:0", "private_data.b|x,y:0"]


def test_lists_sort_as_whole_strings() -> None:
    own = {
        "private_data": {"b": {"value": 1}, "B": {"value": 1}, "a-b": {"value": 1}, "a": {"value": 1, "params": "p"}}
    }
    assert world(own=own).short() == ["B", "a-b", "a|p", "b"]


def test_same_path_in_public_and_private_data_is_one_short_entry() -> None:
    both = {"private_data": rule("a", params="x,y"), "public_data": rule("a", params="y,z")}
    for made in (world(schema=both), world(roles=[{"name": "default", "meta": both}])):
        assert made.short() == ["a|x,y,z"]
        assert made.full() == ["private_data.a|x,y", "public_data.a|y,z"]


def test_short_entry_of_a_declared_public_rule_of_own_data_has_no_section() -> None:
    made = world(schema={"public_data": rule("a", False)}, own={"public_data": rule("a", params="y")})
    assert made.short() == ["a|y"]


def test_short_entry_of_an_undeclared_public_rule_of_own_data_keeps_its_section() -> None:
    made = world(own={"private_data": rule("a", False, params="x"), "public_data": rule("a", params="y")})
    assert made.short() == ["public_data.a|y"]
    made = world(own={"private_data": rule("a", params="x"), "public_data": rule("a", params="y")})
    assert made.short() == ["a|x", "public_data.a|y"]


@pytest.mark.parametrize(
    "declared",
    [
        {"schema": {"private_data": rule("a", False)}},
        {"schema": {"private_data": rule("a", False), "public_data": rule("a", False)}},
        {"roles": [giving("not_assigned", "a")], "schema": {"public_data": rule("a", False)}},
    ],
)
def test_public_rule_of_own_data_never_stands_for_a_private_rule_in_short_lists(declared: dict[str, Any]) -> None:
    made = world(own={"public_data": rule("a", params="forged")}, **declared)
    assert made.short(with_exp=True) == ["public_data.a|forged:0"]
    asked = explain_rule(made.application, made.facts, made.effective, "a")
    assert asked["held"] is False
    assert asked["reasons"][0]["reason"] == "public_only"
    assert explain_rule(made.application, made.facts, made.effective, "public_data.a")["held"] is True


def test_public_rule_of_own_data_adds_nothing_to_a_private_rule_that_is_held() -> None:
    made = world(
        schema={"public_data": rule("a", False)},
        roles=[giving("r", "a", params="2")],
        own={"roles": [{"name": "r", "expired": NOW + 9}], "public_data": rule("a", params="99")},
    )
    assert made.short(with_exp=True) == ["a|2:9", "public_data.a|99:0"]


def test_public_rule_of_the_schema_does_not_stand_for_a_private_rule_that_is_not_held() -> None:
    made = world(schema={"private_data": rule("a", False), "public_data": rule("a")})
    assert made.short() == ["public_data.a"]


def test_short_list_does_not_tell_readers_of_public_data_whether_a_private_rule_is_held() -> None:
    public = frozenset(["public_data"])
    held, missing = (
        world(schema={"private_data": rule("a", value), "public_data": rule("a")}) for value in (True, False)
    )
    assert held.short(sections=public) == missing.short(sections=public) == ["public_data.a"]


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
def test_options_choose_rules(options: dict[str, Any], expected: list[str]) -> None:
    assert member().short(**options) == expected


def test_options_choose_roles() -> None:
    assert member().roles() == ["blue.applications.21/dev", "red_dawn/dev"]
    assert member().roles(project_id="rd") == ["red_dawn/dev"]
    assert member().roles(hide_project_access=True) == []
    assert member().effective_roles(project_id="blue") == ["blue.applications.21/dev", "default"]


def answer(made: World, **options: Any) -> Any:
    chosen = Options(**options)
    return render("list_short", made.application, made.facts, made.effective, chosen)


def test_data_is_an_array_without_options() -> None:
    assert answer(member()) == ["can_create_app", "red_dawn/project.can_view_project|z"]


def test_with_roles_gives_rules_and_effective_roles() -> None:
    assert answer(member(), with_roles=True, hide_project_access=True) == {
        "rules": ["can_create_app"],
        "roles": ["default"],
    }


def test_with_apps_data_gives_projects_and_applications() -> None:
    assert answer(member(), with_apps_data=True) == {
        "rules": ["can_create_app", "red_dawn/project.can_view_project|z"],
        "projects": {"blue": {"name": "Blue"}, "red_dawn": {"name": "Red Dawn", "aliases": ["rd"]}},
        "apps": {"blue": [{"id": 21, "name": "X"}], "red_dawn": [{"id": 11, "name": "A"}, {"id": 12, "name": "B"}]},
    }


def test_with_roles_and_with_apps_data_together() -> None:
    data = answer(member(), with_roles=True, with_apps_data=True, project_id="rd")
    assert set(data) == {"rules", "roles", "projects", "apps"}
    assert data["roles"] == ["default", "red_dawn/dev"]
    assert set(data["projects"]) == set(data["apps"]) == {"red_dawn"}


def test_type_roles_is_assigned_and_granted_whether_or_not_a_condition_holds() -> None:
    roles = [
        giving("a"),
        giving("b", condition={"tag": "x"}),
        giving("c", condition={"everyone": True}),
        giving("default"),
    ]
    made = world(roles=roles, own={"roles": ["b", {"name": "a", "expired": NOW - 1}]})
    assert made.roles() == ["b"]
    assert made.effective_roles() == ["c", "default"]


SCHEMA: dict[str, Any] = {
    "public_data": {"hello": {"value": True}},
    "private_data": {"chat": {"mute": {"value": False, "protected": True, "description": "Mute"}, "x": {"value": 1}}},
    "secret_data": {"application": {"canRead": {"value": False}}},
    "login": {"can": {"value": True}, "cannot": {"value": False}},
}


def test_tree_is_own_data_over_the_schema_with_roles_as_assigned() -> None:
    own = {
        "roles": ["a", {"name": "b", "expired": NOW - 5}, {"name": "c", "ttl": 5, "expired": 7}],
        "private_data": {"chat": {"mute": {"value": True, "expired": NOW + 5, "params": "p"}}, "new": {"value": 1}},
        "secret_data": {"application": {"canRead": {"value": True}}},
        "login": {"cannot": {"value": True}},
    }
    tree = world(schema=SCHEMA, roles=[giving("default", "z")], own=own).tree()
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


def test_tree_shows_expired_entries_of_own_data_and_lists_leave_them_out() -> None:
    own = {
        "private_data": {"chat": {"mute": {"value": True, "expired": NOW}}, "gone": {"a": {"value": 1, "expired": 1}}}
    }
    made = world(schema=SCHEMA, own=own)
    tree = made.tree()["private_data"]
    assert tree["chat"]["mute"] == SCHEMA["private_data"]["chat"]["mute"] | {"value": True, "expired": NOW}
    assert tree["gone"] == {"a": {"value": 1, "expired": 1}}
    assert made.full() == world(schema=SCHEMA).full()
    assert made.short() == world(schema=SCHEMA).short()


def test_tree_leaves_out_what_the_caller_may_not_read() -> None:
    made = world(schema=SCHEMA)
    assert set(as_tree(made.application.schema, made.facts.own, frozenset(["public_data", "roles"]))) == {
        "public_data",
        "roles",
    }


def test_changing_a_tree_does_not_change_the_schema() -> None:
    made = world(schema=SCHEMA)
    made.tree()["private_data"]["chat"]["mute"]["value"] = True
    assert made.tree()["private_data"] == SCHEMA["private_data"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("list", ["private_data.can_create_app"]),
        ("list_short", ["can_create_app"]),
        ("roles", []),
        ("tree", {"login": {}, "private_data": {}, "public_data": {}, "roles": [], "secret_data": {}}),
    ],
)
def test_types_of_a_get(kind: str, expected: Any) -> None:
    made = member()
    chosen = Options(hide_project_access=True)
    assert render(kind, made.application, made.facts, made.effective, chosen) == expected
    with_roles = Options(hide_project_access=True, with_roles=True)
    wrapped = render(kind, made.application, made.facts, made.effective, with_roles)
    assert wrapped == {"rules": expected, "roles": ["default"]}


def test_list_is_the_default_type() -> None:
    assert LIST_TYPES[0] == "list"
