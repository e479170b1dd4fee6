"""Records with fields that must not appear in logs and tracebacks: secrets, and large values."""

from typing import Any, ClassVar

from msgspec import Struct


class RecordWithHiddenFields(Struct, frozen=True):
    """A record whose repr leaves out some fields."""

    hidden_fields: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """For programs that print records with rich, such as the consoles of developers."""
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name not in self.hidden_fields]
