"""The condition index: which conditions are evaluated for a user."""

import json
from typing import Any

import pytest

from sso.perm.engine.condition_index import ConditionIndex
from sso.perm.engine.conditions import Condition
from sso.perm.engine.decode import decode_condition
from tests.perm.evaluation import evaluate, role_giving, user

USER = {"login": "ann@example.com", "tags": ["beta"], "purchases": ["game"], "ip": "10.0.0.1"}


def evaluated(conditions: dict[str, dict[str, Any]]) -> set[str]:
    names: set[str] = set()

    def decode(name: str) -> Condition:
        names.add(name)
        return decode_condition(conditions[name])

    ConditionIndex(conditions, decode).find(user(USER), 0)
    return names


@pytest.mark.parametrize(
    "condition",
    [
        {"domain": "d{}.com"},
        {"uid": ["5{}", "6{}"]},
        {"tag": "t{}"},
        {"purchase": "p{}"},
        {"ip": "10.1.{}.0/24"},
        {"ip": "fd00:{}::/32"},
        {"domain": "example.com", "tag": "t{}"},
        {"and": [{"domain": "example.com"}, {"or": [{"tag": "t{}"}, {"uid": ["5{}"]}]}]},
        {"everyone": True, "tag": "t{}"},
        {"and": []},
        {"or": []},
        {"everyone": False},
    ],
)
def test_condition_that_requires_an_attribute_the_user_lacks_is_not_evaluated(condition: Any) -> None:
    texts = {f"role{at}": json.dumps(condition).replace("{}", str(at), 3) for at in range(100)}
    assert evaluated({name: json.loads(text) for name, text in texts.items()}) == set()


def test_role_is_filed_under_the_rarest_attribute_it_requires() -> None:
    conditions: dict[str, Any] = {f"r{at}": {"domain": "example.com", "tag": f"t{at}"} for at in range(50)}
    conditions["mine"] = {"domain": "example.com", "tag": "beta"}
    assert evaluated(conditions) == {"mine"}


def test_condition_that_requires_no_attribute_is_evaluated_for_every_user() -> None:
    assert evaluated({"a": {"or": [{"tag": "x"}, {"everyone": True}]}, "b": {"tag": "x"}}) == {"a"}


def test_roles_that_are_not_held_are_not_compiled() -> None:
    roles = [role_giving(f"r{at}") for at in range(20)] + [
        role_giving(f"c{at}", condition={"tag": f"x{at}"}) for at in range(20)
    ]
    result = evaluate(roles=roles, own={"roles": ["r3"]})
    result.short()
    compiled = {name for name, role in result.application.roles.items() if "rules" in vars(role)}
    assert compiled == {"r3"}
