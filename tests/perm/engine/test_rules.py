"""Rules: layers, values, parameters and end times of entries."""

from typing import Any

import pytest
from msgspec.structs import force_setattr

from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.rules import MAX_DEPTH, earliest_end, latest_end, rule_nodes
from tests.perm.evaluation import NOW, evaluate, role_giving, rule


def private(path: str, value: Any = True, **members: Any) -> dict[str, Any]:
    return {"private_data": rule(path, value, **members)}


@pytest.mark.parametrize("value", [True, 1, -1, 2.5, "self", "0", "false", " "])
def test_scalar_value_is_listed(value: Any) -> None:
    assert evaluate(schema=private("a", value)).full() == ["private_data.a"]


@pytest.mark.parametrize("value", [False, None, 0, 0.0, ""])
def test_false_null_0_and_empty_string_are_not_listed(value: Any) -> None:
    assert evaluate(schema=private("a", value)).full() == []


def test_role_overrides_the_schema() -> None:
    assert evaluate(schema=private("a", False), roles=[role_giving("default", "a")]).short() == ["a"]
    assert evaluate(schema=private("a"), roles=[role_giving("default", "a", False)]).short() == []


def test_own_data_overrides_roles_and_schema() -> None:
    for value, expected in ((True, ["a"]), (False, [])):
        parts = {"schema": private("a", not value), "roles": [role_giving("default", "a", not value)]}
        assert evaluate(**parts, own=private("a", value)).short() == expected


def test_true_value_of_one_role_wins_over_a_false_one() -> None:
    for first, second in ((True, False), (False, True)):
        roles = [role_giving("a", "x", first, default=True), role_giving("b", "x", second, default=True)]
        assert evaluate(roles=roles).short() == ["x"]


def test_ended_entry_of_own_data_is_ignored() -> None:
    assert evaluate(schema=private("a"), own=private("a", False, expired=NOW)).short() == ["a"]
    assert evaluate(own=private("a", True, expired=NOW)).short() == []
    assert evaluate(own=private("a", True, expired=NOW + 1)).short() == ["a"]


def test_role_parameters_are_appended_to_every_rule_of_the_role() -> None:
    role = {
        "name": "default",
        "meta": {"private_data": {"a": {"value": True, "params": "x"}, "b": {"value": True}}},
        "params": "y, x",
    }
    assert evaluate(roles=[role]).short() == ["a|x,y", "b|y,x"]


def test_parameters_of_several_roles_merge_in_the_order_of_their_names() -> None:
    roles = [
        role_giving("b", "x", default=True, params="2,1"),
        role_giving("a", "x", default=True, params="3,2"),
        role_giving("Z", "x", default=True, params="9"),
    ]
    assert evaluate(roles=roles).short() == ["x|9,3,2,1"]


def test_own_entry_replaces_the_parameters_of_roles() -> None:
    parts: dict[str, Any] = {"schema": private("x", params="s"), "roles": [role_giving("default", "x", params="r")]}
    assert evaluate(**parts, own=private("x", params="o")).short() == ["x|o"]
    assert evaluate(**parts, own=private("x")).short() == ["x"]
    ending = evaluate(**parts, own=private("x", params="o", expired=NOW + 9))
    assert ending.short(with_exp=True) == ["x|o:9"]
    assert evaluate(**parts, own=private("x", params="o", expired=NOW)).short() == ["x|r"]


def test_parameters_of_the_schema_do_not_merge_with_those_of_roles() -> None:
    result = evaluate(schema=private("x", params="s"), roles=[role_giving("default", "x", params="r")])
    assert result.short(with_exp=True) == ["x|r:0"]
    assert evaluate(schema=private("x", params="s")).short() == ["x|s"]


def test_parameters_of_a_role_with_a_false_value_are_ignored() -> None:
    roles = [role_giving("a", "x", False, default=True, params="no"), role_giving("b", "x", default=True, params="yes")]
    assert evaluate(roles=roles).short() == ["x|yes"]


def test_reserved_names_in_stored_data_give_no_rules() -> None:
    result = evaluate()
    forged = {"projectAccess": {"p": {"private_data": {"project": {"can_manage_project": {"value": True}}}}}}
    for name in ("private_data", "public_data"):
        force_setattr(result.facts.own, name, forged | {"a.b": {"value": True}, "ok": {"value": True}})
    assert set(compute_permissions(result.application, result.facts, NOW).rules) == {
        "private_data.ok",
        "public_data.ok",
    }


def test_secret_data_and_login_are_never_listed() -> None:
    secret = {"application": {"canRead": {"value": True}}}
    data = {"secret_data": secret, "login": {"can": {"value": True}}}
    result = evaluate(schema=data, own=data)
    assert (result.full(), result.short()) == ([], [])


def test_unknown_sections_are_ignored() -> None:
    result = evaluate(schema={"other_data": {"a": {"value": True}}}, own={"other_data": {"a": {"value": True}}})
    assert result.full() == []


def test_path_has_at_most_32_names_below_its_section() -> None:
    def nested(names: int) -> dict[str, Any]:
        tree: dict[str, Any] = {"value": True}
        for _ in range(names):
            tree = {"a": tree}
        return tree

    assert MAX_DEPTH == 32
    assert [path.count(".") for path, _ in rule_nodes(nested(32), "private_data")] == [32]
    assert list(rule_nodes(nested(33), "private_data")) == []


@pytest.mark.parametrize(
    ("ends", "first", "last"), [((), 0, 0), ((0,), 0, 0), ((5, 9), 5, 9), ((5, 0, 9), 5, 0), ((1, 2), 1, 2)]
)
def test_end_0_never_ends(ends: tuple[int, ...], first: int, last: int) -> None:
    assert (earliest_end(ends), latest_end(ends)) == (first, last)
