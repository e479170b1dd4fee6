"""Random scenarios: the engine and the reference evaluator agree, for every rendering and every option."""

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
from tests.kit.long_tests import PERMISSION_EXAMPLES
from tests.perm.evaluation import NOW, evaluate, user
from tests.perm.random_scenarios import EMPTY_SCENARIO, ScenarioGenerator, scenario_generators, scenarios
from tests.perm.reference_evaluator import ReferenceEvaluator

pytestmark = pytest.mark.timeout(120 + PERMISSION_EXAMPLES // 10)


def random_scenarios(examples: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, suppress_health_check=slow)


@random_scenarios(PERMISSION_EXAMPLES)
@given(scenario_generators())
def test_all_renderings_agree_with_the_reference_evaluator(generator: ScenarioGenerator) -> None:
    parts, options = generator.scenario(), generator.options()
    engine, reference = evaluate(**parts), ReferenceEvaluator(parts)
    assert engine.full(**options) == reference.full(**options)
    assert engine.short(**options) == reference.short(**options)
    assert engine.roles(**options) == reference.roles(**options)
    assert engine.effective_roles(**options) == reference.effective_roles(**options)
    assert engine.expired(**options) == reference.expired(**options)
    assert project_quota(engine.effective) == reference.project_limit()
    tree = engine.tree()
    assert _values(tree) == reference.tree()
    assert [_name(item) for item in tree["roles"]] == [_name(item) for item in parts["own"]["roles"]]


@random_scenarios(PERMISSION_EXAMPLES // 5)
@given(scenario_generators())
def test_explain_all_explains_exactly_the_listed_rules(generator: ScenarioGenerator) -> None:
    engine, options = evaluate(**generator.scenario()), generator.options()
    plain = {"project_id": options.get("project_id"), "hide_project_access": options.get("hide_project_access", False)}
    arguments = (engine.application, engine.facts, engine.effective)
    for short, lines in ((False, engine.full(**plain)), (True, engine.short(**plain))):
        explanations = explain_all(*arguments, Options(**plain), short=short)
        assert set(explanations) == {line.partition("|")[0] for line in lines}
        for name, explanation in explanations.items():
            assert explanation["held"]
            assert explanation["sources"]
            assert all(source["by"] for source in explanation["sources"] if source["layer"] == "role")
            assert explain_rule(*arguments, name) == {"rule": name} | explanation


@random_scenarios(PERMISSION_EXAMPLES // 5)
@given(scenarios())
def test_explain_rule_gives_a_reason_for_every_missing_rule(parts: dict[str, Any]) -> None:
    engine = evaluate(**parts)
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


@random_scenarios(PERMISSION_EXAMPLES)
@given(scenario_generators())
def test_condition_index_finds_exactly_the_conditions_that_hold(generator: ScenarioGenerator) -> None:
    user_fields, first, second = generator.user(), generator.condition(ip=True), generator.condition(ip=True)
    decoded = {"first": decode_condition(first), "second": decode_condition(second)}
    reference = ReferenceEvaluator({**EMPTY_SCENARIO, "user": user_fields})
    assert {name: holds(condition, user(user_fields), NOW) for name, condition in decoded.items()} == {
        "first": reference.condition(first),
        "second": reference.condition(second),
    }
    assert ConditionIndex({"first": first, "second": second}, decoded.__getitem__).find(user(user_fields), NOW) == {
        name for name, item in decoded.items() if holds(item, user(user_fields), NOW)
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
