"""Compares answers with the examples of the documentation."""

import re
from typing import Any


def agrees(expected: Any, actual: Any, names: dict[str, Any]) -> bool:
    """Whether the values are equal; a name in braces stands for the first value that it is compared with."""
    if expected == "…":
        return True
    if isinstance(expected, str) and (unknown := re.fullmatch(r"\{(\w+)\}", expected)):
        return bool(names.setdefault(unknown[1], actual) == actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(agrees(expected[key], actual[key], names) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(agrees(*pair, names) for pair in zip(expected, actual, strict=True))
    return bool(expected == actual)
