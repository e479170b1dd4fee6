"""The members of a group in requests: users and conditions."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.input.conditions import check_condition
from sso.perm.input.groups import read_group_changes, read_group_fields


@pytest.mark.parametrize(
    "condition",
    [{"ip": "10.0.0.0/8"}, {"and": [{"ip": "10.0.0.0/8"}]}, {"or": [{"tag": "a"}, {"and": [{"ip": "::1"}]}]}],
)
def test_group_condition_must_not_ask_for_ip_at_any_depth(condition: Any) -> None:
    check_condition(condition)
    with pytest.raises(FieldError, match="must not ask for ip"):
        read_group_changes({"conditions": [{"title": "t", "condition": condition}]})


@pytest.mark.parametrize(
    "items",
    [
        [{"title": "t"}],
        [{"condition": {"tag": "a"}}],
        [{"title": "", "condition": {}}],
        [{"title": 1, "condition": {}}],
        [{"title": "t", "condition": []}],
        [{"title": "t", "condition": {"tagg": "a"}}],
        {},
        [1],
        ["x"],
        None,
    ],
)
def test_wrong_group_conditions_are_refused(items: Any) -> None:
    with pytest.raises(FieldError):
        read_group_changes({"conditions": items})


def test_unknown_fields_of_group_conditions_are_ignored_with_a_warning() -> None:
    item = {"title": "t", "condition": {"domain": "Example.com"}}
    assert read_group_changes({"conditions": [item | {"x": 1}]}) == (
        {"conditions": [item]},
        ["conditions[0].x: unknown field, ignored"],
    )


def test_group_has_at_most_100_different_users() -> None:
    users = [str(1000 + at) for at in range(100)]
    assert read_group_changes({"users": users + users}) == ({"users": users}, [])
    with pytest.raises(FieldError):
        read_group_changes({"users": [*users, "5"]})
    wrong: tuple[Any, ...] = ([1], ["x"], ["01"], "1", [None], None, {})
    for value in wrong:
        with pytest.raises(FieldError):
            read_group_changes({"users": value})


@pytest.mark.parametrize("title", ["", " ", "a\n", "x" * 33, "é", "a-b", " a", "a ", None, 5, True, [], {}])
def test_wrong_group_title_is_refused(title: Any) -> None:
    with pytest.raises(FieldError):
        read_group_fields({"title": title})


def test_group_fields_are_read_as_given() -> None:
    assert read_group_fields({"title": "A b", "users": ["x"]}) == {"title": "A b"}
    with pytest.raises(FieldError, match="title: must not begin or end with a space"):
        read_group_fields({"title": " a"})
