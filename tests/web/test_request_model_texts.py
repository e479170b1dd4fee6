"""Every request model describes errors in our own words: pydantic's messages never reach a client."""

import pkgutil
from importlib import import_module
from typing import Any

import pytest
from pydantic import ValidationError

import sso
from sso.core.errors import ApiError
from sso.perm.input.model import InputModel, read_record
from sso.web.body import ParsedBody
from sso.web.request_model import RequestModel, validate

WRONG_VALUES: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "a\nb <script>",
    "x" * 20_000,
    [],
    [1],
    ["x"] * 2000,
    [f"tag{number}" for number in range(2000)],
    [{"unknown": 1}] * 2000,
    {},
    {"x": 1},
    {"10": {"groups": [{}]}},
]


def models() -> list[type[RequestModel]]:
    for module in pkgutil.walk_packages(sso.__path__, "sso."):
        if not module.name.startswith(("sso.db.migrations", "sso.__main__")):
            import_module(module.name)
    return sorted(subclasses(RequestModel), key=lambda model: (model.__module__, model.__name__))


def subclasses(base: type[RequestModel]) -> set[type[RequestModel]]:
    found = {child for child in base.__subclasses__() if child.__module__.startswith("sso.")}
    return found.union(*(subclasses(child) for child in found)) if found else found


MODELS = models()


def wrong_records(model: type[RequestModel]) -> list[Any]:
    """A record with each wrong value in each field, one with all fields wrong, one without any, and no record."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    records: list[Any] = [{name: value} for name in names for value in WRONG_VALUES]
    records += [dict.fromkeys(names, value) for value in WRONG_VALUES]
    return [*records, {}, {"unknown": 1}]


def read(model: type[RequestModel], record: Any) -> None:
    if issubclass(model, InputModel):
        read_record(model, record, ("data",))
    else:
        validate(model, ParsedBody(record, is_form=False))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_message_of_pydantic_reaches_a_client(model: type[RequestModel]) -> None:
    refused = 0
    for record in wrong_records(model):
        try:
            model.model_validate(record)
        except ValidationError as error:
            raw_messages = [detail["msg"] for detail in error.errors()]
        else:
            continue
        with pytest.raises(ApiError) as caught:
            read(model, record)
        text = str(caught.value)
        assert not [raw for raw in raw_messages if raw in text], text
        assert "is not valid" not in text, (text, raw_messages)
        assert all(": " in line for line in text.split("; ")) or text == "too many fields are invalid", text
        refused += 1
    assert refused or not model.model_fields


def test_every_model_of_the_service_is_checked() -> None:
    names = {model.__name__ for model in MODELS}
    assert {"ApplicationFields", "RoleFields", "ProjectSettings", "TokenRequest", "ExchangeRequest"} <= names
