"""The tables of results in the documentation."""

from pathlib import Path

from tests.conformance.plans import Plan

PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.rst"


def table(plan: Plan) -> str:
    """Returns the table of a plan as the documentation must have it."""
    rows = [
        f"   * - ``{module.name}``\n     - {module.result}\n     - {module.remark}".rstrip() for module in plan.modules
    ]
    heading = f"{plan.title}\n{'-' * len(plan.title)}\n\nPlan ``{plan.name}``:\n\n"
    head = ".. list-table::\n   :header-rows: 1\n   :widths: 60 15 45\n\n   * - Module\n     - Result\n     - Remark\n"
    return heading + head + "\n".join(rows) + "\n"
