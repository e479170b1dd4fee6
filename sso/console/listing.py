"""How a list is shown: its filters, its order and its place, and the links that change one of them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from msgspec import Struct


class FilterChoice(NamedTuple):
    """A filter of a list that is chosen from a few values."""

    name: str
    label: str
    options: Sequence[tuple[str, str]]  # values and texts


class Listing(Struct, frozen=True):
    path: str
    filters: Mapping[str, str]
    choices: Sequence[FilterChoice] = ()
    sort: str = ""  # the column that was chosen; "" for the one of the page
    default_sort: str = ""
    order: str = "asc"
    after: str = ""
    next: str | None = None
    export: str = ""  # the path of the CSV file, "" if there is none

    @property
    def query(self) -> str:
        """The filters."""
        return urlencode({name: value for name, value in self.filters.items() if value})

    @property
    def shown_sort(self) -> str:
        return self.sort or self.default_sort

    @property
    def first_path(self) -> str:
        return self._path({"sort": self.sort, "order": self.order if self.sort else ""})

    @property
    def next_path(self) -> str:
        return self._path({"sort": self.sort, "order": self.order if self.sort else "", "after": self.next or ""})

    def sorted_path(self, column: str) -> str:
        """Returns the path of the list sorted by the column; backwards if it is sorted by it already."""
        is_reversed = column == self.shown_sort and self.order == "asc"
        return self._path({"sort": column, "order": "desc" if is_reversed else "asc"})

    def _path(self, more: Mapping[str, str]) -> str:
        query = urlencode({name: value for name, value in {**self.filters, **more}.items() if value})
        return f"{self.path}?{query}" if query else self.path
