"""A statement, compiled once to the SQL text that the driver runs.

It has its own small compiler, because SQLAlchemy takes longer to import than a command such as ``sso user list`` to
run. Running the text with the driver costs a fifth of running it with an SQLAlchemy engine.
"""

import re
import sys
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from sso.db.statement_name import StatementOrigin

_PARAMETER = re.compile(r"(?<![:\w\\]):(\w+)(?!:)")  # :name, but neither ::type nor an escaped \:name
_ESCAPED_COLON = re.compile(r"\\(:\w*)(?![:\w])")


class CompiledStatement(NamedTuple):
    sql: str
    names: tuple[str, ...]  # the parameters, in the order of the placeholders $1, $2, …
    defaults: dict[str, Any]


class Statement:
    """``text`` is SQL with parameters such as ``:user_id``."""

    def __init__(self, text: str, name: str = "") -> None:
        """``name`` is used in logs and traces; by default the constant that holds the statement names it."""
        self.text = text
        self._name = name
        self._origin = StatementOrigin(sys._getframe(1))

    @cached_property
    def _compiled(self) -> CompiledStatement:
        return compile_text(self.text)

    @property
    def sql(self) -> str:
        return self._compiled.sql

    @cached_property
    def name(self) -> str:
        return self._name or self._origin.name(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of the placeholders ``$1``, ``$2``, …"""
        return self._compiled.names

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        """Returns the values in the order of the placeholders. Raises TypeError for unknown names."""
        _, names, defaults = self._compiled
        if not values.keys() <= defaults.keys():
            raise TypeError(f"the statement has no parameters {sorted(values.keys() - defaults.keys())}")
        return [values[name] if name in values else defaults[name] for name in names]


@lru_cache(4096)  # a process may build the services more than once
def compile_text(sql: str) -> CompiledStatement:
    """Numbers the parameters in the order of their first use. A parameter without a value is NULL."""
    numbers: dict[str, int] = {}
    numbered = _PARAMETER.sub(lambda match: f"${numbers.setdefault(match[1], len(numbers) + 1)}", sql)
    return CompiledStatement(_ESCAPED_COLON.sub(r"\1", numbered), tuple(numbers), dict.fromkeys(numbers))
