"""A statement, compiled once to the SQL text that the driver runs.

SQLAlchemy only compiles it. Running the text with the driver costs a fifth of running it with an SQLAlchemy engine.
"""

import sys
from functools import cached_property
from typing import Any

from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

from sso.db.statement_name import StatementOrigin

_DIALECT = dialect()  # type: ignore[no-untyped-call]


class Statement:
    def __init__(self, clause: ClauseElement | str, name: str = "") -> None:
        """``name`` is used in logs and traces; by default it is that of the constant that holds the statement."""
        self.clause = text(clause) if isinstance(clause, str) else clause
        self._name = name
        self._origin = StatementOrigin(sys._getframe(1))

    @cached_property
    def _compiled(self) -> tuple[str, tuple[str, ...], dict[str, Any]]:
        compiled = self.clause.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
        assert isinstance(compiled, SQLCompiler)
        return compiled.string, tuple(compiled.positiontup or ()), dict(compiled.params)

    @property
    def sql(self) -> str:
        return self._compiled[0]

    @cached_property
    def name(self) -> str:
        return self._name or self._origin.name(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of the placeholders ``$1``, ``$2``, …"""
        return self._compiled[1]

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        """Returns the values in the order of the placeholders. Raises TypeError for unknown names."""
        _, names, defaults = self._compiled
        if not values.keys() <= defaults.keys():
            raise TypeError(f"the statement has no parameters {sorted(values.keys() - defaults.keys())}")
        return [values[name] if name in values else defaults[name] for name in names]
