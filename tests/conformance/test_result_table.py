"""The table of results in the documentation, and that every module has a test."""

import pytest

from tests.conformance import (
    test_backchannel_logout_op,
    test_basic_op,
    test_config_op,
    test_rp_initiated_logout_op,
)
from tests.conformance.plans import PLANS, Plan
from tests.conformance.result_table import PAGE, table

TESTS = {
    name
    for file in (test_backchannel_logout_op, test_basic_op, test_config_op, test_rp_initiated_logout_op)
    for name in vars(file)
    if name.startswith("test_oidcc_")
}


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.title)
def test_documentation_has_the_results_of_the_plan(plan: Plan) -> None:
    assert table(plan) in PAGE.read_text(), f"docs/conformance.rst must contain:\n{table(plan)}"


def test_every_module_that_applies_has_a_test_and_no_other() -> None:
    assert {module.test_name for plan in PLANS for module in plan.modules if not module.skip_if} == TESTS
