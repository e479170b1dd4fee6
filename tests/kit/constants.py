"""Shorter intervals for a server of the tests: ``running(folder, **changed({"sso.admin.changes.HEARTBEAT_S": 1}))``.

Only processes that are forked (kit/forked_program.py) know them; others keep the usual values, so a test must be right
with both.
"""

import importlib
from typing import Any

import orjson

CONSTANTS = "CHANGED_CONSTANTS"  # an environment variable


def changed(constants: dict[str, Any]) -> dict[str, str]:
    """Returns a setting for a server, whose constants have these values."""
    return {CONSTANTS: orjson.dumps(constants).decode()}


def set_constants(text: str) -> None:
    """Sets the constants of modules in this process. Raises AttributeError if there is no such constant."""
    for path, value in orjson.loads(text).items():
        module_name, _, name = path.rpartition(".")
        module = importlib.import_module(module_name)
        getattr(module, name)
        setattr(module, name, value)
