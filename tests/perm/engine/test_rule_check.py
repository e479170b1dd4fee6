"""A check gives the answer of a list."""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from sso.perm.engine.render import Options, as_list, as_list_short
from sso.perm.engine.rule_check import covers_param, project_prefix, rule_index
from tests.perm.evaluation import evaluate
from tests.perm.random_scenarios import ScenarioGenerator, scenario_generators

EXAMPLES = int(os.environ.get("SSO_PERM_EXAMPLES", "300"))
pytestmark = pytest.mark.timeout(120 + EXAMPLES // 10)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_generators())
def test_exactly_the_listed_rules_are_allowed(generator: ScenarioGenerator) -> None:
    """For readers of all sections, and of some."""
    effective = evaluate(**generator.scenario()).effective
    for sections in (("private_data", "public_data"), ("public_data",), ("private_data",), ()):
        options = Options(sections=frozenset(sections))
        index = rule_index(effective, options.sections)
        lines = {*as_list(effective, options), *as_list_short(effective, options)}
        assert set(index) == {line.partition("|")[0] for line in lines}
        for line in lines:
            name, _, params = line.partition("|")
            listed = params.split(",") if params else []
            assert covers_param(index[name], None)
            assert all(covers_param(index[name], param) for param in listed)
            assert covers_param(index[name], "no such parameter") is not bool(listed)


@settings(max_examples=EXAMPLES // 3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_generators())
def test_rule_of_a_project_is_that_of_the_list_with_the_option_project_id(generator: ScenarioGenerator) -> None:
    effective = evaluate(**generator.scenario()).effective
    index = rule_index(effective, Options().sections)
    for project in ("p1", "p2_alias", "nope"):
        for rule in ("project.a", "applications/10/app.a", "a"):
            entries = as_list_short(effective, Options(project_id=project))
            expected = any(entry.partition("|")[0] == f"{project.removesuffix('_alias')}/{rule}" for entry in entries)
            assert (project_prefix(effective, project) + rule in index) is expected
