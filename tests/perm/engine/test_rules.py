"""Rules: layers, values, parameters, expiry of entries."""

from typing import Any

import pytest

from sso.perm.engine.effective_permissions import compute_permissions
from tests.perm.world import NOW, giving, rule, world


def private(path: str, value: Any = True, **members: Any) -> dict[str, Any]:
    return {"private_data": rule(path, value, **members)}


@pytest.mark.parametrize("value", [True, 1, -1, 2.5, "self", "0", "false", " "])
def test_a_scalar_is_listed(value: Any) -> None:
    assert world(schema=private("a", value)).full() == ["private_data.a"]


@pytest.mark.parametrize("value", [False, None, 0, 0.0, ""])
def test_false_null_0_and_empty_are_not_listed(value: Any) -> None:
    assert world(schema=private("a", value)).full() == []


def test_role_is_over_the_schema() -> None:
    assert world(schema=private("a", False), roles=[giving("default", "a")]).short() == ["a"]
    assert world(schema=private("a"), roles=[giving("default", "a", False)]).short() == []


def test_own_data_is_over_roles_and_schema() -> None:
    for value, expected in ((True, ["a"]), (False, [])):
        parts = {"schema": private("a", not value), "roles": [giving("default", "a", not value)]}
        assert world(**parts, own=private("a", value)).short() == expected


def test_from_two_roles_a_true_value_beats_a_false_one() -> None:
    for first, second in ((True, False), (False, True)):
        roles = [giving("a", "x", first, default=True), giving("b", "x", second, default=True)]
        assert world(roles=roles).short() == ["x"]


def test_ended_entry_of_the_users_own_is_as_if_absent() -> None:
    assert world(schema=private("a"), own=private("a", False, expired=NOW)).short() == ["a"]
    assert world(own=private("a", True, expired=NOW)).short() == []
    assert world(own=private("a", True, expired=NOW + 1)).short() == ["a"]


def test_role_parameters_are_appended_to_every_rule_of_the_role() -> None:
    role = {
        "name": "default",
        "meta": {"private_data": {"a": {"value": True, "params": "x"}, "b": {"value": True}}},
        "params": "y, x",
    }
    assert world(roles=[role]).short() == ["a|x,y", "b|y,x"]


def test_parameters_of_several_roles_merge_in_the_order_of_their_names() -> None:
    roles = [
        giving("b", "x", default=True, params="2,1"),
        giving("a", "x", default=True, params="3,2"),
        giving("Z", "x", default=True, params="9"),
    ]
    assert world(roles=roles).short() == ["x|9,3,2,1"]


def test_own_entry_replaces_what_roles_give_parameters_included() -> None:
    parts: dict[str, Any] = {"schema": private("x", params="s"), "roles": [giving("default", "x", params="r")]}
    assert world(**parts, own=private("x", params="o")).short() == ["x|o"]
    assert world(**parts, own=private("x")).short() == ["x"]
    ending = world(**parts, own=private("x", params="o", expired=NOW + 9))
    assert ending.short(with_exp=True) == ["x|o:9"]
    assert world(**parts, own=private("x", params="o", expired=NOW)).short() == ["x|r"]


def test_parameters_of_the_schema_do_not_merge_with_those_of_roles() -> None:
    made = world(schema=private("x", params="s"), roles=[giving("default", "x", params="r")])
    assert made.short(with_exp=True) == ["x|r:0"]
    assert world(schema=private("x", params="s")).short() == ["x|s"]


def test_parameters_of_a_role_that_says_no_are_left_out() -> None:
    roles = [giving("a", "x", False, default=True, params="no"), giving("b", "x", default=True, params="yes")]
    assert world(roles=roles).short() == ["x|yes"]


def test_a_name_that_only_we_write_is_never_a_path() -> None:
    made = world()
    forged = {"projectAccess": {"p": {"private_data": {"project": {"can_manage_project": {"value": True}}}}}}
    for name in ("private_data", "public_data"):
        object.__setattr__(made.facts.own, name, forged | {"a.b": {"value": True}, "ok": {"value": True}})
    assert set(compute_permissions(made.application, made.facts, NOW).rules) == {"private_data.ok", "public_data.ok"}


def test_secret_data_and_login_are_never_listed() -> None:
    secret = {"application": {"canRead": {"value": True}}}
    data = {"secret_data": secret, "login": {"can": {"value": True}}}
    made = world(schema=data, own=data)
    assert (made.full(), made.short()) == ([], [])


def test_unknown_sections_are_ignored() -> None:
    made = world(schema={"other_data": {"a": {"value": True}}}, own={"other_data": {"a": {"value": True}}})
    assert made.full() == []
