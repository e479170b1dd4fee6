"""The repr of a record does not show its hidden fields."""

import importlib
from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct

from sso.core.hidden_fields import RecordWithHiddenFields

Record = TypeVar("Record", bound=Struct)


class Key(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"secret"})

    name: str
    secret: str
    uses: int = 1


def test_repr_leaves_out_the_hidden_fields() -> None:
    key = Key("k", "hush")
    assert repr(key) == str(key) == "Key(name='k', uses=1)"
    assert key.__rich_repr__() == [("name", "k"), ("uses", 1)]


def subclasses(record: type[Record]) -> Iterator[type[Record]]:
    for child in record.__subclasses__():
        yield child
        yield from subclasses(child)


def test_each_record_hides_fields_that_it_has() -> None:
    for module in ("sso.services", "sso.backup.restore", "sso.telemetry.otel.export"):
        importlib.import_module(module)
    records = [record for record in subclasses(RecordWithHiddenFields) if record.__module__.startswith("sso.")]
    assert len(records) > 15
    for record in records:
        assert set() < record.hidden_fields <= set(record.__struct_fields__), record


def test_only_records_with_hidden_fields_have_a_repr_of_their_own() -> None:
    """Rich would not use it: each Struct has a method for rich as well."""
    importlib.import_module("sso.services")
    records = [record for record in subclasses(Struct) if record.__module__.startswith("sso.")]
    own = [record for record in records if "__repr__" in vars(record)]
    assert own == [RecordWithHiddenFields]
