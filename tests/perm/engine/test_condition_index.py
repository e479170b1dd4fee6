"""Roles that do not apply are not looked at: what is found by look-up is what the cost depends on."""

import json
from typing import Any

import pytest

from sso.perm.engine.condition_index import ConditionIndex
from sso.perm.engine.conditions import Condition
from sso.perm.engine.decode import decode_condition
from tests.perm.world import giving, user, world

SOMEBODY = {"login": "ann@example.com", "tags": ["beta"], "purchases": ["game"], "ip": "10.0.0.1"}


def looked_at(conditions: dict[str, dict[str, Any]]) -> set[str]:
    seen: set[str] = set()

    def read(name: str) -> Condition:
        seen.add(name)
        return decode_condition(conditions[name])

    ConditionIndex(conditions, read).find(user(SOMEBODY))
    return seen


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
def test_a_necessary_condition_is_found_by_look_up(condition: Any) -> None:
    texts = {f"role{at}": json.dumps(condition).replace("{}", str(at), 3) for at in range(100)}
    assert looked_at({name: json.loads(text) for name, text in texts.items()}) == set()


def test_a_role_is_filed_under_the_rarest_thing_it_needs() -> None:
    conditions: dict[str, Any] = {f"r{at}": {"domain": "example.com", "tag": f"t{at}"} for at in range(50)}
    conditions["mine"] = {"domain": "example.com", "tag": "beta"}
    assert looked_at(conditions) == {"mine"}


def test_what_needs_nothing_nameable_is_evaluated_for_everybody() -> None:
    assert looked_at({"a": {"or": [{"tag": "x"}, {"everyone": True}]}, "b": {"tag": "x"}}) == {"a"}


def test_roles_that_are_not_assigned_are_never_prepared() -> None:
    roles = [giving(f"r{at}") for at in range(20)] + [giving(f"c{at}", condition={"tag": f"x{at}"}) for at in range(20)]
    made = world(roles=roles, own={"roles": ["r3"]})
    made.short()
    prepared = {name for name, role in made.application.roles.items() if "rules" in vars(role)}
    assert prepared == {"r3"}
