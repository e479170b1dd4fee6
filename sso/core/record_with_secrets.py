"""Records that have fields which must not appear in logs and tracebacks."""

from typing import ClassVar

from msgspec import Struct


class RecordWithSecrets(Struct, frozen=True):
    """A record whose repr leaves out some fields."""

    hidden_fields: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in self.hidden_fields)
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
