"""Conditions on the command line: MEMBER=VALUE, or the JSON object of the API."""

from collections.abc import Iterable
from typing import Any

import orjson

from sso.cli.context import CommandFailure

LISTS = ("uid",)
FLAGS = {"true": True, "false": False}


def parse_condition(texts: Iterable[str], where: str) -> dict[str, Any]:
    """Returns the condition that all these parts make, unchecked. ``where`` is the option or argument."""
    condition: dict[str, Any] = {}
    for text in texts:
        for member, value in _parse(text, where).items():
            if member in condition:
                raise CommandFailure(
                    f'{where}: {member} is given twice; expected {{"or": […]}} or {{"and": […]}} in JSON'
                )
            condition[member] = value
    return condition


def _parse(text: str, where: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            value = orjson.loads(text)
        except ValueError:
            raise CommandFailure(f'{where}: expected JSON such as {{"domain": "studio.example"}}') from None
        assert isinstance(value, dict)
        return value
    member, separator, typed = text.partition("=")
    if not separator:
        raise CommandFailure(f"{where}: expected MEMBER=VALUE such as domain=studio.example, or a JSON object")
    if member in LISTS:
        return {member: [part for part in typed.split(",") if part]}
    return {member: FLAGS.get(typed, typed) if member == "everyone" else typed}
