"""The repr of a record does not show its hidden fields."""

import importlib

from sso.core.hidden_fields import RecordWithHiddenFields


class Key(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"secret"})

    name: str
    secret: str
    uses: int = 1


def test_repr_leaves_out_the_hidden_fields() -> None:
    key = Key("k", "hush")
    assert repr(key) == str(key) == "Key(name='k', uses=1)"
    assert key.__rich_repr__() == [("name", "k"), ("uses", 1)]


def test_each_record_hides_fields_that_it_has() -> None:
    importlib.import_module("sso.services")
    records = RecordWithHiddenFields.__subclasses__()
    assert len(records) > 15
    for record in records:
        assert set() < record.hidden_fields <= set(record.__struct_fields__), record
