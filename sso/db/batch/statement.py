"""A statement that serves many items at once: named, typed columns in, at most one row per item out."""

import sys
from collections.abc import Iterable, Mapping
from functools import cached_property

from sso.db.statement import Statement
from sso.db.statement_name import StatementOrigin


class BatchStatement:
    """The SQL of a :class:`~sso.db.batch.statement_batch.Batch`.

    ``{items}`` in the SQL becomes a table ``item`` with the given columns and ``n``, the number of the item, from 1.
    The statement returns ``n`` and at most one row for each item::

        _FIND = BatchStatement(
            "SELECT item.n, s.user_id FROM {items} JOIN sessions s USING (digest) WHERE s.kind = item.kind",
            columns={"digest": "bytea", "kind": "text"},
        )
        find = Batch(database, _FIND)
        row = await find(digest=b"...", kind="bound")

    The column ``digest`` of type ``bytea`` is the parameter ``:digest`` of type ``bytea[]``, which the SQL may use
    directly as well. ``{items}`` may stand in a CTE (``WITH item AS (SELECT * FROM {items})``) and more than once;
    in an f-string it is written ``{{items}}``. Other braces are left alone.
    """

    def __init__(self, sql: str, columns: Mapping[str, str], name: str = "") -> None:
        """``name`` is used in logs and traces; by default the constant that holds the statement names it."""
        if "{items}" not in sql:
            raise ValueError("the SQL of a BatchStatement must contain {items}")
        self._sql = sql
        self._columns = dict(columns)
        self._name = name
        self._origin = StatementOrigin(sys._getframe(1))

    def substitute(self, **parts: object) -> "BatchStatement":
        """Returns the statement with ``{name}`` replaced by the text of ``parts["name"]``, for parts known later."""
        sql = self._sql
        for name, part in parts.items():
            field = f"{{{name}}}"
            if field not in sql:
                raise ValueError(f"the SQL of the BatchStatement does not contain {field}")
            sql = sql.replace(field, str(part))
        return BatchStatement(sql, self._columns, self.name)

    @cached_property
    def statement(self) -> Statement:
        """The plain statement, for a transaction. Its parameters are arrays with a value for each item."""
        arrays = ", ".join(f"CAST(:{name} AS {type_name}[])" for name, type_name in self._columns.items())
        items = f"unnest({arrays}) WITH ORDINALITY AS item ({', '.join(self._columns)}, n)"
        statement = Statement(self._sql.replace("{items}", items), self.name)
        if set(statement.names) != self._columns.keys():
            raise ValueError(f"the SQL of the BatchStatement has parameters that are not columns: {statement.names}")
        return statement

    @property
    def sql(self) -> str:
        return self.statement.sql

    @cached_property
    def name(self) -> str:
        return self._name or self._origin.name(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in the order of the parameters."""
        return self.statement.names


def by_index(column: str, value: str) -> str:
    """Returns a comparison for which PostgreSQL looks up each value of a batch in the index of ``column``.

    A plan may have been made while the table was empty, and is kept for a while. With ``=`` it may read the whole table
    for a batch, although thousands of rows have arrived since; a comparison with an array allows no such plan.
    """
    return f"{column} = ANY (ARRAY[{value}])"


def mismatch(names: Iterable[str], values: Iterable[str]) -> str:
    """Returns the text of the TypeError for an item whose values do not have the names of the columns."""
    missing = sorted(set(names).difference(values))
    unknown = sorted(set(values).difference(names))
    return f"arguments of the batch: missing {missing}, unknown {unknown}"
