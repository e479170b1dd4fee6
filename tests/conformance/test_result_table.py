"""The table of results in the documentation, and that every module has a test."""

from pathlib import Path

import pytest

from tests.conformance import (
    test_backchannel_logout_op,
    test_basic_op,
    test_config_op,
    test_rp_initiated_logout_op,
)
from tests.conformance.plans import PLANS, Plan

PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.rst"
TESTS = {
    name
    for file in (test_backchannel_logout_op, test_basic_op, test_config_op, test_rp_initiated_logout_op)
    for name in vars(file)
    if name.startswith("test_oidcc_")
}


def table(plan: Plan) -> str:
    """Returns the table of a plan as the documentation must have it."""
    rows = [
        f"   * - ``{module.name}``\n     - {'does not apply' if module.skip_if else 'passes'}\n"
        f"     - {module.remark}".rstrip()
        for module in plan.modules
    ]
    heading = f"{plan.title}\n{'-' * len(plan.title)}\n\nPlan ``{plan.name}``:\n\n"
    head = ".. list-table::\n   :header-rows: 1\n   :widths: 60 15 45\n\n   * - Module\n     - Result\n     - Remark\n"
    return heading + head + "\n".join(rows) + "\n"


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.title)
def test_documentation_has_the_results_of_the_plan(plan: Plan) -> None:
    assert table(plan) in PAGE.read_text(), f"docs/conformance.rst must contain:\n{table(plan)}"


def test_every_module_that_applies_has_a_test_and_no_other() -> None:
    assert {module.test_name for plan in PLANS for module in plan.modules if not module.skip_if} == TESTS
