"""Conditions as short texts, ``domain=studio.example tag=beta``, on the command line and in the console.

Conditions with ``and`` and ``or`` are written as the JSON objects of the API.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from sso.core.field_errors import FieldError, FieldPath
from sso.core.untrusted_json import read_json

LISTS = ("uid",)
MAX_LISTED = 5000  # parts of a list; a longer one takes long to read
FLAGS = {"true": True, "false": False}


def parse_condition(texts: Iterable[str], path: FieldPath) -> dict[str, Any]:
    """Returns the condition that all these parts make, unchecked. ``path`` is the option, argument or field."""
    condition: dict[str, Any] = {}
    for text in texts:
        for member, value in _parse(text, path).items():
            if member in condition:
                raise FieldError(path, f'{member} is given twice; expected {{"or": […]}} or {{"and": […]}} in JSON')
            condition[member] = value
    return condition


def condition_text(condition: Mapping[str, Any]) -> str:
    """Returns the short text that `parse_condition` reads, or indented JSON if there is none."""
    words = {member: _word(value) for member, value in condition.items()}
    if all(word and not set(word) & set(" {\n\t") for word in words.values()):
        return " ".join(f"{member}={word}" for member, word in words.items())
    return orjson.dumps(condition, option=orjson.OPT_INDENT_2).decode()


def _word(value: object) -> str:
    """Returns "" for a value that needs JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        are_words = all(isinstance(item, str) and item and "," not in item for item in value)
        return ",".join(value) if are_words and len(value) <= MAX_LISTED else ""
    return value if isinstance(value, str) else ""


def _parse(text: str, path: FieldPath) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            value = read_json(text)
        except ValueError:
            raise FieldError(path, 'expected JSON such as {"domain": "studio.example"}') from None
        assert isinstance(value, dict)
        return value
    member, separator, typed = text.partition("=")
    if not separator:
        raise FieldError(path, "expected MEMBER=VALUE such as domain=studio.example, or a JSON object")
    if member in LISTS:
        if typed.count(",") >= MAX_LISTED:
            raise FieldError((*path, member), f"must have at most {MAX_LISTED} parts in this form; write JSON for more")
        return {member: [part for part in typed.split(",") if part]}
    return {member: FLAGS.get(typed, typed) if member == "everyone" else typed}
