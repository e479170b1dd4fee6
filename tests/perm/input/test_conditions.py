"""Conditions in requests: strict types, no unknown members, limits."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.input.conditions import check_condition


@pytest.mark.parametrize(
    "condition",
    [
        {"everyone": "false"},
        {"everyone": 0},
        {"everyone": None},
        {"uid": "12"},
        {"uid": [12]},
        {"uid": [""]},
        {"uid": None},
        {"tag": ""},
        {"tag": 1},
        {"tag": ["a"]},
        {"tag": "a\n"},
        {"domain": ""},
        {"domain": "@x.com"},
        {"domain": "a b"},
        {"domain": ["x"]},
        {"purchase": ""},
        {"ip": "10.0.0.0/33"},
        {"ip": 1},
        {"ip": True},
        {"ip": ["10.0.0.0/8"]},
        {"ip": "10.0.0.0/255.0.0.0"},
        {"and": {}},
        {"and": [1]},
        {"or": "x"},
        {"or": [None]},
        {"not": {}},
        {"Domain": "x"},
        {"and": [{"unknown": 1}]},
        [],
        "x",
        1,
        True,
        None,
    ],
)
def test_wrong_condition_is_refused(condition: Any) -> None:
    with pytest.raises(FieldError):
        check_condition(condition)


def test_error_names_the_path_of_the_member() -> None:
    with pytest.raises(FieldError) as caught:
        check_condition({"or": [{"tag": "a"}, {"and": [{"ip": "x"}]}]})
    assert caught.value.message == "condition.or[1].and[0].ip: not an IP address"


def chain(length: int) -> dict[str, Any]:
    condition: dict[str, Any] = {"everyone": True}
    for _ in range(length - 1):
        condition = {"and": [condition]}
    return condition


def test_condition_has_at_most_256_nodes() -> None:
    check_condition({"or": [{"tag": "a"}] * 255})
    with pytest.raises(FieldError, match="256 nodes"):
        check_condition({"or": [{"tag": "a"}] * 256})
    with pytest.raises(FieldError, match="256 nodes"):
        check_condition({"or": [{"tag": "a"}] * 1_000_000})


def test_condition_has_at_most_64_levels() -> None:
    check_condition(chain(64))
    with pytest.raises(FieldError, match="64 levels"):
        check_condition(chain(65))
    with pytest.raises(FieldError):
        check_condition(chain(900))
