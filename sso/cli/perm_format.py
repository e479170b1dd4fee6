"""Formats the explanation of a rule as text."""

from collections.abc import Iterator
from typing import Any

from sso.perm.engine.explanation.text import end_text, explanation_lines, params_text


def format_explanation(login: str, app_id: int, explanation: dict[str, Any]) -> Iterator[str]:
    if explanation["held"]:
        yield f"{login} has {explanation['rule']}{params_text(explanation)}{end_text(explanation)}:"
    else:
        yield f"{login} does not have {explanation['rule']} at application {app_id}:"
    for line in explanation_lines(explanation):
        yield f"{'  ' * (line.level + 1)}{line.text}"
