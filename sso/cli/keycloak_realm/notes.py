"""What the report of an import says about the parts of a realm."""

from collections.abc import Callable, Collection
from typing import TypeAlias

from msgspec import Struct, field

Note: TypeAlias = Callable[[str], None]


class Notes(Struct):
    """Texts in the order of the realm, each with its subject, such as ``client forum``."""

    _items: list[tuple[str, str]] = field(default_factory=list)

    def add(self, subject: str, text: str) -> None:
        self._items.append((subject, text))

    def about(self, subject: str) -> Note:
        return lambda text: self.add(subject, text)

    def replace(self, subjects: Collection[str], text: str) -> None:
        """Drops what was noted about these subjects, of which only this text is true."""
        self._items = [item for item in self._items if item[0] not in subjects]
        self._items += [(subject, text) for subject in subjects]

    def lines(self) -> list[str]:
        return [f"{subject}: {text}" for subject, text in self._items]
