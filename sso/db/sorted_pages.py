"""Pages of a list in one of several orders.

A page begins after the last record of the previous one: after its value in the sorted column, and after its key among
records with the same value. Records that are added or deleted meanwhile therefore neither shift nor repeat others.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from sso.core.field_errors import InvalidCursor
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

T = TypeVar("T")
S = TypeVar("S")
MAX_NUMBER = 2**31 - 1  # the largest integer of PostgreSQL


class SortColumn(Struct, frozen=True):
    """``value`` is an SQL expression that is never NULL. A column with unique values needs no key beside it."""

    value: str
    kind: Literal["text", "time", "number"] = "text"
    is_unique: bool = False


class PageQuery(Struct, frozen=True):
    limit: int
    search: str = ""
    sort: str = ""  # the name of a column; "" for the key of the list
    descending: bool = False
    after: str = ""  # `Page.next` of the previous page


class Page(Struct, Generic[T], frozen=True):
    records: Sequence[T]
    next: str | None  # None on the last page

    def map(self, function: Callable[[T], S]) -> "Page[S]":
        return Page([function(record) for record in self.records], self.next)


class ListOrder:
    """The SQL of one order of a list: its sorted value, what comes after a record, and the order itself.

    ``key`` is the column with the keys of the records, which decides between records with the same value.
    """

    def __init__(self, key: SortColumn, column: SortColumn, *, descending: bool) -> None:
        self._key, self._column, self.value = key, column, column.value
        direction, beyond = ("DESC", "<") if descending else ("ASC", ">")
        if column.is_unique:
            self.order, self._after = f"{self.value} {direction}", f"{self.value} {beyond} :after_value"
        else:
            self.order = f"{self.value} {direction}, {key.value} {direction}"
            self._after = f"({self.value}, {key.value}) {beyond} (:after_value, :after_key)"

    def after(self, *, has_cursor: bool) -> str:
        """Returns the condition for records after the cursor."""
        return self._after if has_cursor else "TRUE"

    def values(self, cursor: str) -> dict[str, Any]:
        """Returns the parameters of that condition. Raises InvalidCursor."""
        if not cursor:
            return {}
        if self._column.is_unique:
            return {"after_value": _read(self._column, cursor)}
        value, slash, key = cursor.rpartition("/")
        if not slash:
            raise InvalidCursor
        return {"after_value": _read(self._column, value), "after_key": _read(self._key, key)}

    def cursor(self, value: Any, key: Any) -> str:
        """Returns the cursor after the record with this value and key."""
        text = value.isoformat() if isinstance(value, datetime) else str(value)
        return text if self._column.is_unique else f"{text}/{key}"


def _read(column: SortColumn, text: str) -> Any:
    """Returns the value that a cursor has for the column. Raises InvalidCursor."""
    if column.kind == "number":
        if not (text.isascii() and text.isdecimal() and len(text) < 11 and 0 < int(text) <= MAX_NUMBER):
            raise InvalidCursor
        return int(text)
    if column.kind == "time":
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            raise InvalidCursor from None
    return text


class SortedPages:
    """The statements of a list that is small, or has an index for each order.

    ``select`` is SQL with the places {value}, {after} and {order}, and the parameters ``:limit`` and ``:search``.
    Without the name of a column, the list is sorted by its key, which rows have as ``sort_key``.
    """

    def __init__(self, select: str, key: SortColumn, columns: Mapping[str, SortColumn]) -> None:
        orders = {"": key, **columns}

        @cache
        def statement(sort: str, descending: bool, has_cursor: bool) -> tuple[Statement, ListOrder]:
            order = ListOrder(key, orders[sort], descending=descending)
            value = f"{order.value} AS sort_value, {key.value} AS sort_key"
            text = select.format(value=value, after=order.after(has_cursor=has_cursor), order=order.order)
            return Statement(text), order

        self._statement = statement

    async def page(self, runner: Runner, query: PageQuery, **values: Any) -> Page[Row]:
        statement, order = self._statement(query.sort, query.descending, bool(query.after))
        values |= {"search": query.search, "limit": query.limit + 1}
        rows = await runner.rows(statement, **order.values(query.after), **values)
        return cut_page(rows, query.limit, lambda row: order.cursor(row["sort_value"], row["sort_key"]))


def cut_page(rows: Sequence[T], limit: int, cursor: Callable[[T], str]) -> Page[T]:
    """The first ``limit`` rows. One more of them means that there is a next page."""
    shown = rows[:limit]
    return Page(shown, cursor(shown[-1]) if len(rows) > limit else None)
