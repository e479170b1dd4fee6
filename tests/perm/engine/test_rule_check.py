"""A check gives the answer of a list."""

import pytest
from hypothesis import HealthCheck, given, settings

from sso.perm.engine.render import Options, as_list, as_list_short
from sso.perm.engine.rule_check import covers_param, find_rule, project_prefix, rule_index, sections_of
from tests.kit.long_tests import PERMISSION_EXAMPLES
from tests.perm.evaluation import evaluate
from tests.perm.random_scenarios import ScenarioGenerator, scenario_generators

SECTIONS = tuple(map(frozenset, (["private_data"], ["public_data"], ["private_data", "public_data"], [])))
pytestmark = pytest.mark.timeout(120 + PERMISSION_EXAMPLES // 10)


@settings(max_examples=PERMISSION_EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_generators())
def test_exactly_the_listed_rules_are_allowed(generator: ScenarioGenerator) -> None:
    """For readers of all sections, and of some."""
    effective = evaluate(**generator.scenario()).effective
    all_names = set(rule_index(effective, Options().sections))
    for sections in (("private_data", "public_data"), ("public_data",), ("private_data",), ()):
        options = Options(sections=frozenset(sections))
        index = rule_index(effective, options.sections)
        lines = {*as_list(effective, options), *as_list_short(effective, options)}
        assert set(index) == {line.partition("|")[0] for line in lines}
        for name in {*index, *all_names}:
            assert find_rule(effective, name, options.sections) == index.get(name)
            if name in index:
                assert name in rule_index(effective, sections_of(name))
        for line in lines:
            name, _, params = line.partition("|")
            listed = params.split(",") if params else []
            assert covers_param(index[name], None)
            assert all(covers_param(index[name], param) for param in listed)
            assert covers_param(index[name], "no such parameter") is not bool(listed)


@settings(max_examples=PERMISSION_EXAMPLES // 4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_generators())
def test_rule_of_a_project_is_that_of_the_list_with_the_option_project_id(generator: ScenarioGenerator) -> None:
    effective = evaluate(**generator.scenario()).effective
    index = rule_index(effective, Options().sections)
    for project in ("p1", "p2_alias", "nope"):
        for rule in ("project.a", "applications/10/app.a", "a"):
            entries = as_list_short(effective, Options(project_id=project))
            expected = any(entry.partition("|")[0] == f"{project.removesuffix('_alias')}/{rule}" for entry in entries)
            assert (project_prefix(effective, project) + rule in index) is expected


def test_name_with_a_section_is_a_rule_of_that_section_alone() -> None:
    assert sections_of("private_data.kick") == {"private_data"}
    assert sections_of("public_data.private_data.kick") == {"public_data"}
    assert sections_of("kick") == sections_of("private_datakick") == {"private_data", "public_data"}


def test_public_rule_is_not_taken_for_a_private_one() -> None:
    """In both sections, in the public one alone, and with a public path that looks like a private one."""
    both = evaluate(schema={name: {"kick": {"value": True}} for name in ("private_data", "public_data")}).effective
    assert find_rule(both, "kick", SECTIONS[0]) == (both.rules["private_data.kick"],)
    assert [find_rule(both, "public_data.kick", sections) is not None for sections in SECTIONS] == [
        False,
        True,
        True,
        False,
    ]
    forged = evaluate(schema={"public_data": {"private_data": {"kick": {"value": True}}}}).effective
    assert find_rule(forged, "private_data.kick", SECTIONS[2]) is None
    assert find_rule(forged, "public_data.private_data.kick", SECTIONS[2])
