"""The repr of a record does not show its secrets."""

import importlib

from sso.core.record_with_secrets import RecordWithSecrets


class Key(RecordWithSecrets, frozen=True):
    hidden_fields = frozenset({"secret"})

    name: str
    secret: str
    uses: int = 1


def test_repr_leaves_out_the_hidden_fields() -> None:
    assert repr(Key("k", "hush")) == str(Key("k", "hush")) == "Key(name='k', uses=1)"


def test_each_record_with_secrets_names_fields_that_it_has() -> None:
    for module in ("sso.accounts.model", "sso.oauth.model", "sso.gsid.model", "sso.upstream.model"):
        importlib.import_module(module)
    records = RecordWithSecrets.__subclasses__()
    assert len(records) > 5
    for record in records:
        assert set() < record.hidden_fields <= set(record.__struct_fields__), record
