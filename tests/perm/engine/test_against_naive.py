"""Random worlds: the engine and the naive evaluator say the same, in every rendering and with every option."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from sso.perm.engine.condition_index import ConditionIndex
from sso.perm.engine.conditions import holds
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.explanation.explain import explain_all, explain_rule
from sso.perm.engine.project_quota import project_quota
from sso.perm.engine.render import Options
from sso.perm.engine.rules import rule_nodes
from tests.perm.naive import Naive
from tests.perm.world import user, world
from tests.perm.worlds import NOTHING, Maker, makers, worlds

EXAMPLES = int(os.environ.get("SSO_PERM_EXAMPLES", "300"))  # 10000 in a long run
pytestmark = pytest.mark.timeout(120 + EXAMPLES // 10)


def random_worlds(examples: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, suppress_health_check=slow)


@random_worlds(EXAMPLES)
@given(makers())
def test_all_views_agree_with_the_naive_evaluator(maker: Maker) -> None:
    parts, chosen = maker.world(), maker.options()
    engine, naive = world(**parts), Naive(parts)
    assert engine.full(**chosen) == naive.full(**chosen)
    assert engine.short(**chosen) == naive.short(**chosen)
    assert engine.roles(**chosen) == naive.roles(**chosen)
    assert engine.effective_roles(**chosen) == naive.effective_roles(**chosen)
    assert engine.expired(**chosen) == naive.expired(**chosen)
    assert project_quota(engine.effective) == naive.project_limit()
    tree = engine.tree()
    assert _values(tree) == naive.tree()
    assert [_name(item) for item in tree["roles"]] == [_name(item) for item in parts["own"]["roles"]]


@random_worlds(EXAMPLES // 5)
@given(makers())
def test_explanations_cover_exactly_what_is_listed(maker: Maker) -> None:
    engine, chosen = world(**maker.world()), maker.options()
    plain = {"project_id": chosen.get("project_id"), "hide_project_access": chosen.get("hide_project_access", False)}
    arguments = (engine.application, engine.facts, engine.effective)
    for short, lines in ((False, engine.full(**plain)), (True, engine.short(**plain))):
        chains = explain_all(*arguments, Options(**plain), short=short)
        assert set(chains) == {line.partition("|")[0] for line in lines}
        for name, chain in chains.items():
            assert chain["held"]
            assert chain["sources"]
            assert all(link["by"] for link in chain["sources"] if link["layer"] == "role")
            assert explain_rule(*arguments, name) == {"rule": name} | chain


@random_worlds(EXAMPLES // 5)
@given(worlds())
def test_every_missing_rule_has_a_reason(parts: dict[str, Any]) -> None:
    engine = world(**parts)
    listed = {line.partition("|")[0] for line in engine.full()}
    known = {path for role in engine.application.roles.values() for path, *_ in role.rules}
    own = parts["own"]
    known |= {path for name in ("public_data", "private_data") for path, _ in rule_nodes(own.get(name, {}), name)}
    known |= {f"private_data.projectAccess.{project['id']}.private_data.project.a" for project in parts["projects"]}
    for path in known - listed:
        answer = explain_rule(engine.application, engine.facts, engine.effective, path)
        assert answer["held"] is False
        assert answer["reasons"]
        if any(role_has(engine, path)):
            assert answer["reasons"][0]["reason"] != "unknown"


@random_worlds(EXAMPLES)
@given(makers())
def test_the_index_finds_exactly_the_conditions_that_hold(maker: Maker) -> None:
    somebody, first, second = maker.user(), maker.condition(ip=True), maker.condition(ip=True)
    read = {"first": decode_condition(first), "second": decode_condition(second)}
    naive = Naive({**NOTHING, "user": somebody})
    assert {name: holds(condition, user(somebody)) for name, condition in read.items()} == {
        "first": naive.condition(first),
        "second": naive.condition(second),
    }
    assert ConditionIndex({"first": first, "second": second}, read.__getitem__).find(user(somebody)) == {
        name for name, item in read.items() if holds(item, user(somebody))
    }


def role_has(engine: Any, path: str) -> list[bool]:
    return [rule.listed for role in engine.application.roles.values() for rule in role.rules if rule.path == path]


def _name(item: Any) -> Any:
    return item if isinstance(item, str) else item["name"]


def _values(tree: dict[str, Any]) -> dict[str, Any]:
    """By path. Where the schema has a rule and the user's data has rules below it, a tree shows both in one node."""
    found: dict[str, Any] = {}

    def walk(node: dict[str, Any], path: str) -> None:
        if "value" in node:
            found[path] = node["value"]
        for name, below in node.items():
            if isinstance(below, dict):
                walk(below, f"{path}.{name}")

    for section in ("public_data", "private_data", "secret_data", "login"):
        walk(tree[section], section)
    return found
