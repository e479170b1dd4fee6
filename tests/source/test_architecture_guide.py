"""The examples of docs/architecture.rst, "Where to add code", followed step by step."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (
    (ROOT / "docs/architecture.rst").read_text().partition("Where to add code\n---")[2].partition("\nOther places:")[0]
)
STEPS = re.findall(r"^#\. (.*(?:\n   .*)*)", GUIDE, re.MULTILINE)


def test_guide_has_its_six_examples() -> None:
    examples = re.findall(r"^\*\*(An? [^*]+)\*\*", GUIDE, re.MULTILINE)
    assert examples == [
        "An endpoint",
        "A record that administrators manage",
        "A condition",
        "A grant type",
        "An event",
        "A console page",
    ]
    assert len(STEPS) > 30


@pytest.mark.parametrize("step", STEPS)
def test_step_is_where_the_guide_says(step: str) -> None:
    """A step begins with a file, and the file contains everything that the step quotes."""
    path, *quoted = re.findall(r"``([^`]+)``", step)
    text = (ROOT / path).read_text()
    assert [item for item in quoted if item not in text] == []
